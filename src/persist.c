/*-------------------------------------------------------------------------
 *
 * persist.c
 *	  See persist.h.
 *
 * The tables are written when the postmaster shuts down in an orderly way,
 * never after a crash, to a temporary file that is then renamed.  They are
 * read when it starts, and the file is removed at once: no stale file gets
 * into a base backup, and a crash never brings back old figures.
 *
 * The file is for the same library and the same major version on the same
 * machine; a header says so, and a checksum covers everything behind it.  A
 * file that is foreign, truncated or damaged is logged and discarded.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <sys/stat.h>
#include <unistd.h>

#include "catalog/pg_control.h"
#include "clients.h"
#include "common/controldata_utils.h"
#include "guc.h"
#include "history.h"
#include "miscadmin.h"
#include "persist.h"
#include "pgstat.h"
#include "port/pg_crc32c.h"
#include "slot.h"
#include "statements.h"
#include "storage/fd.h"
#include "utils/timestamp.h"

#define PERSIST_FILE		"pg_stat/pgnetlat.stat"
#define PERSIST_MAGIC		0x504E4C31	/* "PNL1"; changes with the format */

typedef struct PersistHeader
{
	uint32		magic;
	uint32		major;
	uint32		statement_size;
	uint32		client_size;
	uint32		bucket_size;
	int32		statements;
	int32		clients;
	int32		buckets;
	TimestampTz reset_timestamp;
	pg_crc32c	crc;			/* of what follows */
} PersistHeader;

typedef struct Writer
{
	FILE	   *file;
	bool		failed;
	PersistHeader header;
} Writer;

static void
write_chunk(Writer *writer, const void *data, size_t size)
{
	if (!writer->failed && fwrite(data, size, 1, writer->file) != 1)
		writer->failed = true;
	COMP_CRC32C(writer->header.crc, data, size);
}

static void
write_statement(const StatementEntry *entry, void *arg)
{
	Writer	   *writer = arg;

	write_chunk(writer, entry, sizeof(*entry));
	writer->header.statements++;
}

static void
write_body(Writer *writer)
{
	ClientEntry *clients;
	HistoryBucket *buckets;

	statements_iterate(write_statement, writer);
	clients = clients_copy(&writer->header.clients);
	for (int i = 0; i < writer->header.clients; i++)
		write_chunk(writer, &clients[i], sizeof(ClientEntry));
	buckets = history_copy(GetCurrentTimestamp(), &writer->header.buckets);
	for (int i = 0; i < writer->header.buckets; i++)
		write_chunk(writer, &buckets[i], sizeof(HistoryBucket));
	FIN_CRC32C(writer->header.crc);
}

static bool
write_file(Writer *writer)
{
	memset(&writer->header, 0, sizeof(writer->header));
	writer->header.magic = PERSIST_MAGIC;
	writer->header.major = PG_VERSION_NUM / 100;
	writer->header.statement_size = sizeof(StatementEntry);
	writer->header.client_size = sizeof(ClientEntry);
	writer->header.bucket_size = sizeof(HistoryBucket);
	writer->header.reset_timestamp = slot_reset_timestamp();
	INIT_CRC32C(writer->header.crc);

	/* room for the header, which is complete only when the rest is written */
	if (fwrite(&writer->header, sizeof(writer->header), 1, writer->file) != 1)
		return false;
	write_body(writer);
	return !writer->failed &&
		fseek(writer->file, 0, SEEK_SET) == 0 &&
		fwrite(&writer->header, sizeof(writer->header), 1, writer->file) == 1;
}

/*
 * Was this an orderly shutdown?  The exit code does not tell: the postmaster
 * leaves an immediate one with 0 as well.  Backends may then have died while
 * they wrote to shared memory, or with our locks held.
 */
static bool
shutdown_was_orderly(void)
{
	bool		crc_ok;
	ControlFileData *control = get_controlfile(DataDir, &crc_ok);

	return crc_ok &&
		(control->state == DB_SHUTDOWNED || control->state == DB_SHUTDOWNED_IN_RECOVERY);
}

/*
 * Save everything, as the postmaster's last deed.
 */
void
persist_save(int code, Datum arg)
{
	Writer		writer = {0};
	bool		written;

	if (code != 0 || !pgnetlat_save || !shutdown_was_orderly())
		return;

	writer.file = AllocateFile(PERSIST_FILE ".tmp", PG_BINARY_W);
	if (writer.file == NULL)
	{
		ereport(LOG,
				(errcode_for_file_access(),
				 errmsg("could not create file \"%s\": %m", PERSIST_FILE ".tmp")));
		return;
	}
	written = write_file(&writer);
	if (FreeFile(writer.file) != 0)
		written = false;
	if (!written)
	{
		ereport(LOG,
				(errcode_for_file_access(),
				 errmsg("could not write file \"%s\": %m", PERSIST_FILE ".tmp")));
		unlink(PERSIST_FILE ".tmp");
		return;
	}
	(void) durable_rename(PERSIST_FILE ".tmp", PERSIST_FILE, LOG);
}

/* Is the file ours, and complete?  Checked before anything of it is used. */
static bool
header_fits(const PersistHeader *header, size_t body_size)
{
	if (header->magic != PERSIST_MAGIC ||
		header->major != PG_VERSION_NUM / 100 ||
		header->statement_size != sizeof(StatementEntry) ||
		header->client_size != sizeof(ClientEntry) ||
		header->bucket_size != sizeof(HistoryBucket) ||
		header->statements < 0 || header->clients < 0 || header->buckets < 0)
		return false;
	return body_size ==
		(size_t) header->statements * sizeof(StatementEntry) +
		(size_t) header->clients * sizeof(ClientEntry) +
		(size_t) header->buckets * sizeof(HistoryBucket);
}

static void
restore_body(const PersistHeader *header, const char *body)
{
	StatementEntry statement;
	ClientEntry client;
	HistoryBucket bucket;

	/* copied one by one, for alignment */
	for (int i = 0; i < header->statements; i++, body += sizeof(statement))
	{
		memcpy(&statement, body, sizeof(statement));
		statements_restore(&statement);
	}
	for (int i = 0; i < header->clients; i++, body += sizeof(client))
	{
		memcpy(&client, body, sizeof(client));
		clients_restore(&client);
	}
	for (int i = 0; i < header->buckets; i++, body += sizeof(bucket))
	{
		memcpy(&bucket, body, sizeof(bucket));
		history_restore(&bucket);
	}
}

/* Read and check the file; false if it is not to be used. */
static bool
read_file(FILE *file)
{
	struct stat st;
	PersistHeader header;
	char	   *body;
	size_t		size;
	pg_crc32c	crc;
	bool		valid = false;

	if (fstat(fileno(file), &st) != 0 || st.st_size < (off_t) sizeof(header) ||
		fread(&header, sizeof(header), 1, file) != 1)
		return false;
	size = st.st_size - sizeof(header);
	if (!header_fits(&header, size))
		return false;
	body = palloc_extended(size + 1, MCXT_ALLOC_HUGE | MCXT_ALLOC_NO_OOM);
	if (body == NULL)
		return false;
	if (size == 0 || fread(body, size, 1, file) == 1)
	{
		INIT_CRC32C(crc);
		COMP_CRC32C(crc, body, size);
		FIN_CRC32C(crc);
		valid = EQ_CRC32C(crc, header.crc);
	}
	if (valid)
	{
		restore_body(&header, body);
		slot_restore_reset_timestamp(header.reset_timestamp);
	}
	pfree(body);
	return valid;
}

/*
 * Load what was saved.  Never fails: without a good file there is nothing.
 */
void
persist_load(void)
{
	FILE	   *file;

	/* a leftover from a shutdown that was cut short */
	unlink(PERSIST_FILE ".tmp");

	file = AllocateFile(PERSIST_FILE, PG_BINARY_R);
	if (file == NULL)
	{
		if (errno != ENOENT)
			ereport(LOG,
					(errcode_for_file_access(),
					 errmsg("could not read file \"%s\": %m", PERSIST_FILE)));
		return;
	}
	if (pgnetlat_save && !read_file(file))
		ereport(LOG,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("ignoring invalid data in file \"%s\"", PERSIST_FILE),
				 errhint("Statistics of pgnetlat start from zero.")));
	FreeFile(file);
	unlink(PERSIST_FILE);
}
