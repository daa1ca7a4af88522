import type Kernel from '@onkernel/sdk'
import { hostName } from '../pages.ts'

/** Written in Perl, which every machine has. One process per connection, which ends with either side. */
const program = `
use IO::Socket::INET; use IO::Select;
$SIG{CHLD} = 'IGNORE'; $| = 1;
my ($port, $target) = @ARGV;
my $listener = IO::Socket::INET->new(Listen => 100, LocalAddr => '127.0.0.1', LocalPort => $port, ReuseAddr => 1) or die $!;
print "listening\\n";
while (my $client = $listener->accept) {
  next if fork;
  my $server = IO::Socket::INET->new(PeerAddr => $target) or exit;
  my $both = IO::Select->new($client, $server);
  while (my @ready = $both->can_read) {
    for my $from (@ready) {
      sysread($from, my $bytes, 65536) or exit;
      my $to = $from == $client ? $server : $client;
      while (length $bytes) { my $count = syswrite($to, $bytes) or exit; substr($bytes, 0, $count) = '' }
    }
  }
}
`

/**
 * Serves a port of the host's loopback at the same port of a session's localhost. Pages there are secure origins, and
 * belong to another site than those at the host's name.
 */
export async function relayToLocalhost(client: Kernel, sessionId: string, port: number): Promise<void> {
  const { process_id = '' } = await client.browsers.process.spawn(sessionId, {
    command: 'perl',
    args: ['-e', program, String(port), `${hostName}:${port}`],
  })
  for await (const { event, data_b64 } of await client.browsers.process.stdoutStream(process_id, { id: sessionId })) {
    if (Buffer.from(data_b64 ?? '', 'base64').includes('listening')) return
    if (event === 'exit') throw new Error('the relay does not run')
  }
}
