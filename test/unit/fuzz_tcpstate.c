/* Sources: tcpstate.c */
/*
 * fuzz_tcpstate.c: a good reply, corrupted by the fuzzer's input (changed
 * bytes and its length), must not be misread.
 *
 *	make -C test/unit fuzz		(clang with libFuzzer; FUZZ_SECONDS=60)
 */
#include "tcpstate_model.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	TcpEndpoints endpoints;
	ModelReply	reply;
	uint8_t    *bytes = malloc(size + 1);
	const char *wrong;

	model_endpoints(&endpoints);
	model_reply(&endpoints, &reply);
	for (size_t i = 0; i < size; i++)
		bytes[i] = data[i] ^ (i < sizeof(reply) ? ((const uint8_t *) &reply)[i] : 0);
	wrong = model_read(bytes, size);
	free(bytes);
	if (wrong != NULL)
	{
		fprintf(stderr, "%s\n", wrong);
		abort();
	}
	return 0;
}
