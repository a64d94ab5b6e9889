# SPDX-License-Identifier: Apache-2.0 OR MIT
# Strings, hashes and regular expressions: hashes.pl ROUNDS
use strict;
my $n = 0;
for my $round (1 .. $ARGV[0]) {
	my %h;
	push @{$h{$_ % 199}}, "value $_ of $round" for 1 .. 2000;
	for my $k (sort keys %h) {
		my @words = map { [split / /] } @{$h{$k}};
		$n += grep { $_->[1] =~ /^(\d)\1/ } @words;
	}
}
print "$n\n";
