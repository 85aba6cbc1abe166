/* Sources: trace_context.c */
/*
 * fuzz_trace_context.c: the properties of trace_context_model.h for any
 * application_name.
 *
 *	make -C test/unit fuzz		(clang with libFuzzer; FUZZ_SECONDS=60)
 */
#include "trace_context_model.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char	   *name = malloc(size + 1);
	const char *wrong;

	memcpy(name, data, size);
	name[size] = '\0';
	wrong = model_take(name);
	if (wrong != NULL)
	{
		fprintf(stderr, "%s: %s\n", wrong, name);
		abort();
	}
	free(name);
	return 0;
}
