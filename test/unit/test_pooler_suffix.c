/* Sources: pooler_suffix.c */
/*
 * test_pooler_suffix.c: what is a pooler's suffix, what is not, and what it says.
 */
#include "pooler_suffix_model.h"

#include "check.h"

static size_t
read_name(const char *name, PoolerClient *client)
{
	const char *wrong = model_read(name, strlen(name));

	CHECK(wrong == NULL, "%s: %s", name, wrong ? wrong : "");
	return pooler_suffix_read(name, strlen(name), MODEL_LONGEST, client);
}

/* Check that a suffix follows "rest" bytes, and what it says. */
static void
check_suffix(const char *name, size_t rest, const char *address, int port)
{
	PoolerClient client;
	char		text[INET6_ADDRSTRLEN] = "unix";

	CHECK_EQUAL(read_name(name, &client), rest, name);
	CHECK_EQUAL(client.poolers, 1, name);
	if (client.family != 0)
		inet_ntop(client.family, client.address, text, sizeof(text));
	CHECK(strcmp(text, address) == 0, "%s: %s", name, text);
	CHECK_EQUAL(client.port, port, name);
}

static void
check_none(const char *name)
{
	PoolerClient client;

	CHECK_EQUAL(read_name(name, &client), strlen(name), name);
	CHECK_EQUAL(client.poolers, 0, name);
}

static void
test_forms(void)
{
	check_suffix("shop - 10.0.0.7:51034", 4, "10.0.0.7", 51034);
	check_suffix("app - 255.255.255.255:65535", 3, "255.255.255.255", 65535);
	check_suffix("app - 0.0.0.0:1", 3, "0.0.0.0", 1);
	check_suffix("shop - [2001:db8::7]:51034", 4, "2001:db8::7", 51034);
	check_suffix("shop - [::1]:6432", 4, "::1", 6432);
	check_suffix("shop - [::ffff:10.0.0.7]:80", 4, "10.0.0.7", 80);
	check_suffix("shop - unix:6432", 4, "unix", 0);
	check_suffix("shop - unix(4711@some-host.example):6432", 4, "unix", 0);
	check_suffix("shop - unix(4711@):6432", 4, "unix", 0);
	/* unusual names */
	check_suffix(" - 10.0.0.7:51034", 0, "10.0.0.7", 51034);
	check_suffix("a - b - 10.0.0.7:51034", 5, "10.0.0.7", 51034);
	check_suffix(" -  - 10.0.0.7:51034", 3, "10.0.0.7", 51034);
}

static void
test_others(void)
{
	static const char *const names[] = {
		"", "shop", " - ", "shop - ", "-", " -", "- 1.2.3.4:5",
		"shop-10.0.0.7:51034", "shop -10.0.0.7:51034", "shop- 10.0.0.7:51034",
		"shop - 10.0.0.7", "shop - 10.0.0.7:", "shop - 10.0.0.7:0",
		"shop - 10.0.0.7:051034", "shop - 10.0.0.7:65536", "shop - 10.0.0.7:510341",
		"shop - 10.0.0.7:51034 ", "shop -  10.0.0.7:51034", "shop - 10.0.0.7: 5103",
		"shop - 10.0.0.7:-1", "shop - 10.0.0.7:+1", "shop - 10.0.0.7:0x50",
		"shop - 10.0.0:51034", "shop - 10.0.0.256:51034", "shop - 10.0.0.07:51034",
		"shop - 10.0.0.7.8:51034", "shop - 010.0.0.7:51034", "shop - :51034",
		"shop - [10.0.0.7]:51034", "shop - 2001:db8::7:51034", "shop - [2001:db8::7]",
		"shop - [2001:db8::7]51034", "shop - [2001:DB8::7]:51034",
		"shop - [2001:0db8::7]:51034", "shop - [fe80::1%eth0]:51034", "shop - []:51034",
		"shop - [", "shop - [::1", "shop - [::1]:", "shop - localhost:51034",
		"shop - unix", "shop - unix:", "shop - unix()", "shop - unix(4711@host)",
		"shop - unix(4711@host)6432", "shop - unix(4711@host):6432)", "shop - unixes:6432",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		check_none(names[i]);
}

/* The server keeps 63 bytes: a suffix that is cut off says less or nothing. */
static void
test_cut(void)
{
	static const char whole[] = " - 10.0.0.7:51034";
	char		name[MODEL_LONGEST + 1];

	for (size_t kept = 0; kept <= sizeof(whole) - 1; kept++)
	{
		size_t		rest = MODEL_LONGEST - kept;

		memset(name, 'x', rest);
		memcpy(name + rest, whole, kept);
		name[MODEL_LONGEST] = '\0';
		if (kept < sizeof(" - 10.0.0.7:") - 1)
			check_none(name);
		else
			check_suffix(name, rest, "10.0.0.7", 0);
	}
	check_suffix("a name of thirty-two characters. - unix(4711@some-host.example.", 32, "unix", 0);
	check_suffix("a name of thirty-two characters. - unix(4711@some-host.example)", 32, "unix", 0);
	check_suffix("a name of thirty-two characters. - unix(4711@some-host.exampl):", 32, "unix", 0);
	check_suffix("a name of forty-eight characters, which are many - unix(47111111", 48, "unix", 0);
}

static void
test_several(void)
{
	PoolerClient client;

	CHECK_EQUAL(read_name("shop - 10.0.0.7:51034 - [::1]:6432 - unix:6433", &client), 4,
				"the rest before three suffixes");
	CHECK_EQUAL(client.poolers, 3, "the number of three poolers");
	CHECK_EQUAL(client.port, 51034, "the port of the first suffix");
	/* only what is correct up to the end is a suffix */
	CHECK_EQUAL(read_name("shop - 10.0.0.7:5x - 10.0.0.8:6432", &client), 18,
				"the rest before the correct suffix");
	CHECK_EQUAL(client.poolers, 1, "the number of poolers in the correct suffix");
	CHECK_EQUAL(client.address[3], 8, "the address in the correct suffix");
}

static void
test_same(void)
{
	PoolerClient a;
	PoolerClient b;

	read_name("one - 10.0.0.7:51034", &a);
	read_name("other - 10.0.0.7:51034", &b);
	CHECK(pooler_suffix_same(&a, &b), "the same connection under another name is the same client");
	read_name("one - 10.0.0.7:51035", &b);
	CHECK(!pooler_suffix_same(&a, &b), "another port is another client");
	read_name("one - 10.0.0.8:51034", &b);
	CHECK(!pooler_suffix_same(&a, &b), "another address is another client");
	read_name("one", &b);
	CHECK(!pooler_suffix_same(&a, &b), "a name without suffix is another client");
}

/* Random changes to good names. */
static void
test_spoilt(void)
{
	static const char *const names[] = {
		"shop - 10.0.0.7:51034", "shop - [2001:db8::7]:51034", "a - unix(4711@host):6432",
		"shop - 10.0.0.7:51034 - 10.0.0.8:6432",
	};
	static const char alphabet[] = "0123456789.:[]() -unix@abf";

	srand(1);
	for (int i = 0; i < 300000; i++)
	{
		char		name[80];
		const char *wrong;

		strcpy(name, names[rand() % 4]);
		for (int j = rand() % 3; j >= 0; j--)
			name[rand() % strlen(name)] = alphabet[rand() % (sizeof(alphabet) - 1)];
		wrong = model_read(name, strlen(name));
		CHECK(wrong == NULL, "%s: %s", name, wrong ? wrong : "");
	}
}

int
main(void)
{
	test_forms();
	test_others();
	test_cut();
	test_several();
	test_same();
	test_spoilt();
	return CHECKS_DONE("test_pooler_suffix");
}
