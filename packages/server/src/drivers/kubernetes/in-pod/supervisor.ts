import { podPorts } from '@berth/contract/agent/machine/machine-pod.ts'
import { oomScoreAdjustment } from '../../local/sandbox/machine-command.ts'

/*
 * The first process of a machine's container. It stops and continues all others and reads the kernel's counters for
 * them. It is written in Perl, which every Debian system has: Node.js would need 40 MiB more in each machine. It loads
 * no module. Only the egress container can connect, on behalf of a server: programs of the machine have another
 * network. Requests are lines: `freeze`, `thaw`, `state`, `memory-kills`, `policies`, and `policies N` followed by N
 * bytes. The response is a line `ok N` followed by N bytes, or `failed: …`.
 */
const supervisorProgram = String.raw`
use strict;
my ($policies, $filter, @command) = @ARGV;
$^F = 255;
sub listener {
  my ($port) = @_;
  my $socket;
  socket($socket, 2, 1, 0) && setsockopt($socket, 1, 2, 1) or die "socket: $!\n";
  bind($socket, pack("S n C4 x8", 2, $port, 127, 0, 0, 1)) && listen($socket, 1024) or die "port $port: $!\n";
  return $socket;
}
my $agent = listener(${podPorts.agent});
my $control = listener(${podPorts.supervisor});
# The same as for the machine's programs: with the kubelet's higher value, the kernel would kill this process before a
# program that takes all memory.
if (open(my $file, ">", "/proc/self/oom_score_adj")) { print $file "${oomScoreAdjustment}\n"; close $file }
$SIG{PIPE} = "IGNORE";
my $ending = 0;
$SIG{TERM} = $SIG{INT} = sub { $ending = 1; kill "KILL", -1; };
my $ended;
$SIG{CHLD} = sub {};
my $child = fork() // die "fork: $!\n";
if ($child == 0) {
  $SIG{$_} = "DEFAULT" for qw(TERM INT CHLD PIPE);
  close $control;
  # In the order of the descriptors that the machine's command expects: listener, lifeline, filter, information.
  my @opened = ($agent);
  for my $path ("/dev/null", $filter, ">/dev/null") {
    open(my $file, $path) or die "$path: $!\n";
    push @opened, $file;
  }
  my $numbers = join(" ", map { fileno($_) } @opened);
  $numbers eq "3 4 5 6" or die "descriptors: $numbers\n";
  exec { $command[0] } @command or die "$command[0]: $!\n";
}
close $agent;

my $frozen = 0;
sub running {
  my $count = 0;
  for my $path (glob("/proc/[0-9]*/stat")) {
    open(my $file, "<", $path) or next;
    my ($pid, $state) = (<$file> // "") =~ /^(\d+) .*\) (\S) /s or next;
    $count++ if $pid != 1 && $state !~ /[TtZX]/;
  }
  return $count;
}
sub freeze {
  for (1 .. 1000) {
    kill "STOP", -1;
    $frozen = 1;
    return "" unless running();
    select(undef, undef, undef, 0.002);
  }
  die "some processes do not stop\n";
}
sub slurp {
  my ($path) = @_;
  open(my $file, "<", $path) or return undef;
  local $/;
  return scalar <$file>;
}
sub memory_kills {
  for my $path ("/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control") {
    my $text = slurp($path) // next;
    return $1 if $text =~ /^oom_kill (\d+)$/m;
  }
  return 0;
}
sub write_policies {
  my ($text) = @_;
  open(my $file, ">", "$policies.new") or die "policies: $!\n";
  print $file $text;
  close $file or die "policies: $!\n";
  # Chromium reads every file of the folder: the new one is made beside it.
  rename("$policies.new", "$policies/session.json") or die "policies: $!\n";
  return "";
}
sub answer {
  my ($line, $body) = @_;
  return freeze() if $line eq "freeze";
  if ($line eq "thaw") { kill "CONT", -1; $frozen = 0; return "" }
  return $frozen ? "frozen" : "running" if $line eq "state";
  return memory_kills() if $line eq "memory-kills";
  return slurp("$policies/session.json") // die("policies: $!\n") if $line eq "policies";
  return write_policies($body) if $line =~ /^policies \d+$/;
  die "unknown request\n";
}
sub serve {
  my ($client) = @_;
  local $SIG{ALRM} = sub { die "too slow\n" };
  my $reply = eval {
    alarm 5;
    my $line = <$client> // die "nothing was asked\n";
    chomp $line;
    my $body = "";
    if ($line =~ /^policies (\d+)$/) {
      my $bytes = $1;
      $bytes <= 4194304 or die "too long\n";
      while (length($body) < $bytes) {
        read($client, $body, $bytes - length($body), length($body)) or die "too short\n";
      }
    }
    my $text = answer($line, $body);
    alarm 0;
    "ok " . length($text) . "\n$text";
  } // "failed: $@";
  alarm 0;
  syswrite($client, $reply);
}
while (1) {
  my $gone;
  while (($gone = waitpid(-1, 1)) > 0) { $ended = $? if $gone == $child }
  if (defined $ended) {
    kill "KILL", -1;
    exit($ending ? 143 : $ended & 127 ? 128 + ($ended & 127) : $ended >> 8);
  }
  my $ready = "";
  vec($ready, fileno($control), 1) = 1;
  # A child that ends between waitpid and select is noticed after this limit at the latest.
  next unless select($ready, undef, undef, 0.2) > 0;
  my $client;
  accept($client, $control) or next;
  serve($client);
  close $client;
}
`

interface SupervisorOptions {
  readonly policiesFolder: string
  readonly seccompFilter: string
  /** Runs in the machine, with the descriptors of `machine-command.ts`. */
  readonly command: readonly string[]
}

/** Program and arguments. */
export function supervisorCommand({ policiesFolder, seccompFilter, command }: SupervisorOptions): readonly string[] {
  return ['/usr/bin/perl', '-e', supervisorProgram, '--', policiesFolder, seccompFilter, ...command]
}
