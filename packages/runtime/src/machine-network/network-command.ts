import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { inheritedDescriptors, machinePorts } from '@berth/contract/agent/machine/machine-network.ts'
import { interfacePlan, ipv6Plan, packetRules } from './network-plan.ts'

export interface NetworkFiles {
  readonly interfaces: string
  readonly ipv6: string
  readonly rules: string
}

/** Writes the files that every network is created from. */
export async function writeNetworkFiles(folder: string): Promise<NetworkFiles> {
  const files = { interfaces: join(folder, 'interfaces'), ipv6: join(folder, 'ipv6'), rules: join(folder, 'rules') }
  await Promise.all([
    writeFile(files.interfaces, interfacePlan),
    writeFile(files.ipv6, ipv6Plan),
    writeFile(files.rules, packetRules),
  ])
  return files
}

/** Applies the rules and the IPv6 routes while the next program starts, which waits for both. */
const makeNetwork = `
nft -f "$3" &
ip -batch "$1" || exit
ip -6 -batch "$2" &
shift 3
exec "$@"
`

/*
 * Opens sockets that need rights over the network, and passes them to the next program. Loads no module, since each
 * would take longer than everything else here. The packet socket gets its protocol together with its interface, because
 * changing it later waits for the whole kernel. Constants are from linux/in.h, in6.h, if_packet.h and sockios.h.
 */
const openDescriptors = String.raw`
$^F = 255;
for ("all/rp_filter 0", "eth0/rp_filter 0", "eth0/accept_local 1") {
  my ($name, $value) = split;
  my $setting;
  open($setting, ">", "/proc/sys/net/ipv4/conf/$name") && syswrite($setting, $value) or die "net/ipv4/conf/$name: $!\n";
}
sub listener {
  my ($family, $level, $transparent, $address) = @_;
  my $socket;
  socket($socket, $family, 1, 0) && setsockopt($socket, $level, $transparent, 1) or die "transparent socket: $!\n";
  bind($socket, $address) && listen($socket, 1024) or die "transparent listener: $!\n";
  return $socket;
}
my @below;
while (open(my $unused, "<", "/dev/null")) {
  last if fileno($unused) >= ${inheritedDescriptors.captureIpv4};
  push @below, $unused;
}
my $ipv4 = listener(2, 0, 19, pack("S n C4 x8", 2, ${machinePorts.capture}, 127, 0, 0, 1));
my $ipv6 = listener(10, 41, 75, pack("S n N x15 C N", 10, ${machinePorts.capture}, 0, 1, 0));
socket(my $frames, 17, 3, 0) or die "packet socket: $!\n";
my $interface = pack("a16 x24", "eth1");
ioctl($frames, 0x8933, $interface) && setsockopt($frames, 263, 23, 1)
  && bind($frames, pack("S n l x12", 17, 3, unpack("x16 l", $interface))) or die "packet socket: $!\n";
while ((my $child = wait()) != -1) { $? == 0 or exit 1 }
my $opened = join(" ", map { fileno($_) } $ipv4, $ipv6, $frames);
$opened eq "${inheritedDescriptors.captureIpv4} ${inheritedDescriptors.captureIpv6} ${inheritedDescriptors.frames}" or die "descriptors: $opened\n";
exec { $ARGV[0] } @ARGV or die "$ARGV[0]: $!\n";
`

/**
 * Arguments that create the network of a machine in a new network namespace, with rights over it, and then run a
 * command.
 */
export function inMachineNetwork(files: NetworkFiles, command: readonly string[]): readonly string[] {
  return [
    ...['/bin/sh', '-c', makeNetwork, 'berth-network', files.interfaces, files.ipv6, files.rules],
    ...['/usr/bin/perl', '-e', openDescriptors, '--', ...command],
  ]
}
