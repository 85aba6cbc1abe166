/* Sources: pooler_suffix.c */
/*
 * fuzz_pooler_suffix.c: the properties of pooler_suffix_model.h for any
 * application_name.
 *
 *	make -C test/unit fuzz		(clang with libFuzzer; FUZZ_SECONDS=60)
 */
#include "pooler_suffix_model.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char	   *name = malloc(size + 1);
	const char *wrong;

	memcpy(name, data, size);
	wrong = model_read(name, size);
	if (wrong != NULL)
	{
		fprintf(stderr, "%s: %.*s\n", wrong, (int) size, name);
		abort();
	}
	free(name);
	return 0;
}
