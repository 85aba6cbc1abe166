/* Sources: exec_split.c ledger.c */
/*
 * fuzz_ledger.c: the properties of ledger_model.h over the fuzzer's input.
 *
 *	make -C test/unit fuzz		(clang with libFuzzer; FUZZ_SECONDS=60)
 */
#include <stddef.h>

#include "ledger_model.h"

typedef struct Input
{
	const uint8_t *data;
	size_t		left;
} Input;

static int
input_byte(void *source)
{
	Input	   *input = source;

	if (input->left == 0)
		return -1;
	input->left--;
	return *input->data++;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	Input		input = {data, size};
	Model		model;

	model_begin(&model);
	while (model_step(&model, input_byte, &input))
		;
	if (model.broken != NULL)
		abort();
	return 0;
}
