
# Copyright (c) 2026, the pgnetlat authors

=pod

=head1 NAME

PgNetlat::Scram - the client's part of SCRAM-SHA-256

=head1 DESCRIPTION

For tests that take their time between the messages of authentication, which
no driver does: RFC 5802 and RFC 7677, without channel binding.

    my $scram = PgNetlat::Scram->new('password');
    PgNetlat::Client->connect($node, authenticate => sub { $scram->answer(@_) });

=cut

package PgNetlat::Scram;

use strict;
use warnings;

use Digest::SHA qw(hmac_sha256 sha256);
use MIME::Base64;
use PgNetlat::Client;

# Authentication requests, as in the protocol's documentation
use constant { SASL => 10, SASL_CONTINUE => 11 };

sub new
{
	my ($class, $password) = @_;
	my $nonce = join '', map { chr(97 + int(rand(26))) } 1 .. 18;

	return bless { password => $password, nonce => $nonce }, $class;
}

sub _salted_password
{
	my ($self, $salt, $iterations) = @_;
	my $u = hmac_sha256($salt . pack('N', 1), $self->{password});
	my $result = $u;

	for (2 .. $iterations)
	{
		$u = hmac_sha256($u, $self->{password});
		$result ^= $u;
	}
	return $result;
}

# The client's final message, in answer to the server's first one.
sub _proof
{
	my ($self, $server_first) = @_;
	my %server = map { /^(.)=(.*)$/s } split /,/, $server_first;
	my $salted =
	  $self->_salted_password(decode_base64($server{s}), $server{i});
	my $key = hmac_sha256('Client Key', $salted);
	my $final = "c=biws,r=$server{r}";
	my $signature =
	  hmac_sha256("$self->{first},$server_first,$final", sha256($key));

	return "$final,p=" . encode_base64($key ^ $signature, '');
}

# The message that answers a request.
sub answer
{
	my ($self, $number, $data) = @_;

	if ($number == SASL)
	{
		$self->{first} = "n=,r=$self->{nonce}";
		return message('p',
			"SCRAM-SHA-256\0" . pack('N/a*', "n,,$self->{first}"));
	}
	die "unexpected question $number\n" unless $number == SASL_CONTINUE;
	return message('p', $self->_proof($data));
}

1;
