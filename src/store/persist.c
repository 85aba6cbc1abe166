/*-------------------------------------------------------------------------
 *
 * persist.c
 *	  See persist.h.
 *
 * The tables are written when the postmaster shuts down in an orderly way,
 * never after a crash, to a temporary file that is then renamed.  They are
 * read when it starts.
 *
 * The file stays until the server is up, which is when the sampler runs or the
 * first session has been let in: a start that fails, say because of an error
 * in pg_hba.conf, loses nothing.  Then it is removed, so that no stale file
 * gets into a base backup and a crash never brings back old figures.  If it is
 * nevertheless there when the server starts after a crash or from a backup,
 * the control file shows that, and the file is not used.
 *
 * The file is a header, each section's entries behind their number, and a
 * checksum over everything before it.  It is for the same library and the same
 * major version on the same machine, as the header says.  One that is foreign,
 * truncated or damaged is logged and discarded.
 *
 * A file with a good checksum is believed, except that nothing in it may make a
 * view raise an error or spoil a table: names are cut to printable ASCII, which is
 * all that core lets into them, and counters to what can be added to.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "blockers.h"
#include "catalog/pg_control.h"
#include "clients.h"
#include "common/controldata_utils.h"
#include "history.h"
#include "miscadmin.h"
#include "persist.h"
#include "pools.h"
#include "port/pg_crc32c.h"
#include "session_slot.h"
#include "settings.h"
#include "statements.h"
#include "storage/fd.h"
#include "utils/timestamp.h"

#define PERSIST_FILE		"pg_stat/pgnetlat.stat"
#define PERSIST_MAGIC		0x4C4E4750	/* "PGNL" */
#define PERSIST_LAYOUT		1	/* changes with what a structure of the same
								 * size means */

#define NUM_SECTIONS		5

typedef struct PersistHeader
{
	uint32		magic;
	uint32		layout;
	uint32		major;
	uint32		entry_size[NUM_SECTIONS];
	TimestampTz reset_timestamp;
} PersistHeader;

/*
 * Has the server been shut down in an orderly way?  The exit code does not tell:
 * the postmaster leaves an immediate shutdown with 0 as well, in which backends may
 * have died while they wrote to shared memory or with our locks held.  Where the
 * start of a standby has failed since, it has: had it come up, there would be no
 * file.
 */
static bool
was_shut_down(bool by_now)
{
	bool		crc_ok;
	ControlFileData *control = get_controlfile(DataDir, &crc_ok);

	return crc_ok && (control->state == DB_SHUTDOWNED ||
					  control->state == DB_SHUTDOWNED_IN_RECOVERY ||
					  (!by_now && control->state == DB_IN_ARCHIVE_RECOVERY));
}

static void
remove_file(void)
{
	if (access(PERSIST_FILE, F_OK) == 0)
		(void) durable_unlink(PERSIST_FILE, LOG);
}

/*
 * The server is up, and what was loaded is being added to.
 */
void
persist_server_is_up(void)
{
	remove_file();
}

/* ---------------------------------------------------------------------------
 * The sections: what is saved, and how it is restored
 * ---------------------------------------------------------------------------
 */

/* Structures of nothing but counts and times: none negative, room to add more. */
static void
cut_counters(void *counters, size_t size)
{
	int64	   *values = counters;

	for (size_t i = 0; i < size / sizeof(int64); i++)
		values[i] = Min(Max(values[i], 0), PG_INT64_MAX / 2);
}

static void
cut_timestamp(TimestampTz *timestamp)
{
	if (!IS_VALID_TIMESTAMP(*timestamp))
		*timestamp = GetCurrentTimestamp();
}

/* What the entries of all tables have. */
static void
cut_entry(double *usage, TimestampTz *since, void *counters, size_t size)
{
	if (isnan(*usage) || *usage < 0)
		*usage = 0;
	cut_timestamp(since);
	cut_counters(counters, size);
}

static void
cut_name(char *name)
{
	size_t		length = strnlen(name, NAMEDATALEN - 1);

	for (size_t i = 0; i < length; i++)
	{
		if (name[i] < 0x20 || name[i] > 0x7E)
			name[i] = '?';
	}
	memset(name + length, 0, NAMEDATALEN - length);
}

static void
cut_client_key(ClientKey *key)
{
	if (key->family != AF_INET && key->family != AF_INET6)
		key->family = 0;
	cut_name(key->application_name);
}

static void
restore_statement(void *saved)
{
	StatementEntry *entry = saved;

	cut_entry(&entry->usage, &entry->since, &entry->counters, sizeof(entry->counters));
	statements_restore(entry);
}

/* No session lives on. */
static void
restore_client(void *saved)
{
	ClientEntry *entry = saved;

	entry->is_evicted = *(uint8 *) &entry->is_evicted != 0 || !OidIsValid(entry->key.datid);
	cut_client_key(&entry->key);
	cut_entry(&entry->usage, &entry->since, &entry->counters, sizeof(entry->counters));
	memset(&entry->live, 0, sizeof(entry->live));
	clients_restore(entry);
}

static void *
copy_history(int *count)
{
	return history_copy(GetCurrentTimestamp(), count);
}

static void
restore_interval(void *saved)
{
	HistoryInterval *interval = saved;

	cut_timestamp(&interval->start);
	cut_timestamp(&interval->end);
	interval->end = Max(interval->end, interval->start);
	for (int i = 0; i <= HISTORY_DATABASES; i++)
	{
		HistoryRow *row = &interval->rows[i];

		row->used = *(uint8 *) &row->used != 0;
		cut_counters(&row->totals, sizeof(*row) - offsetof(HistoryRow, totals));
	}
	history_restore(interval);
}

/* Nobody waits any more. */
static void
restore_blocker(void *saved)
{
	BlockerEntry *entry = saved;

	cut_client_key(&entry->key.client);
	cut_name(entry->key.backend_type);
	cut_entry(&entry->usage, &entry->since, &entry->counters, sizeof(entry->counters));
	blockers_restore(entry);
}

static void *
copy_pools(int *count)
{
	return pools_copy(POOLS_WHOLE, count);
}

/* Nobody is connected any more. */
static void
restore_pool(void *saved)
{
	PoolCopy   *pool = saved;

	if (pool->kind < POOL_OF_ROLE || pool->kind > POOL_EVICTED)
		return;
	cut_entry(&pool->usage, &pool->since, &pool->time, sizeof(*pool) - offsetof(PoolCopy, time));
	pool->sessions = pool->busy = 0;
	pool->sessions_max = Min(pool->sessions_max, PG_INT32_MAX / 2);
	pool->busy_max = Min(pool->busy_max, PG_INT32_MAX / 2);
	pools_restore(pool);
}

typedef void *(*CopyFunction) (int *count); /* palloc'd */

/* In the order in which they are in the file. */
static const struct
{
	uint32		entry_size;
	CopyFunction copy;
	void		(*restore) (void *saved);
}			sections[NUM_SECTIONS] = {
	{sizeof(StatementEntry), (CopyFunction) statements_copy, restore_statement},
	{sizeof(ClientEntry), (CopyFunction) clients_copy, restore_client},
	{sizeof(HistoryInterval), copy_history, restore_interval},
	{sizeof(BlockerEntry), (CopyFunction) blockers_copy, restore_blocker},
	{sizeof(PoolCopy), copy_pools, restore_pool},
};

/* The header that a file of this server has. */
static void
make_header(PersistHeader *header)
{
	memset(header, 0, sizeof(*header));
	header->magic = PERSIST_MAGIC;
	header->layout = PERSIST_LAYOUT;
	header->major = PG_VERSION_NUM / 100;
	for (int i = 0; i < NUM_SECTIONS; i++)
		header->entry_size[i] = sections[i].entry_size;
	header->reset_timestamp = slot_reset_timestamp();
}

/* Write, and add to the checksum. */
static bool
write_chunk(FILE *file, const void *data, size_t size, pg_crc32c *crc)
{
	COMP_CRC32C(*crc, data, size);
	return size == 0 || fwrite(data, size, 1, file) == 1;
}

static bool
write_file(FILE *file)
{
	PersistHeader header;
	pg_crc32c	crc;
	bool		written;

	INIT_CRC32C(crc);
	make_header(&header);
	written = write_chunk(file, &header, sizeof(header), &crc);
	for (int i = 0; written && i < NUM_SECTIONS; i++)
	{
		int			count;
		void	   *entries = sections[i].copy(&count);
		int64		saved = count;

		written = write_chunk(file, &saved, sizeof(saved), &crc) &&
			write_chunk(file, entries, (size_t) count * sections[i].entry_size, &crc);
		pfree(entries);
	}
	FIN_CRC32C(crc);
	return written && fwrite(&crc, sizeof(crc), 1, file) == 1;
}

/*
 * Save everything: the last thing that the postmaster does.
 */
void
persist_save(int code, Datum arg)
{
	FILE	   *file;
	bool		written;

	if (code != 0 || !was_shut_down(true))
		return;
	if (!pgnetlat_save)
	{
		remove_file();
		return;
	}
	file = AllocateFile(PERSIST_FILE ".tmp", PG_BINARY_W);
	written = file != NULL && write_file(file);
	if (file != NULL && FreeFile(file) != 0)
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

#define DAMAGED		"It is truncated or damaged."

/*
 * Restore what is in a file that has been read; "size" is without its checksum.
 * NULL if that is done, or why it is not.
 */
static const char *
use_content(char *content, size_t size, pg_crc32c saved_crc)
{
	PersistHeader *header = (PersistHeader *) content;
	PersistHeader expected;
	char	   *at = content + sizeof(*header);
	char	   *end = content + size;
	pg_crc32c	crc;

	make_header(&expected);
	if (header->magic != expected.magic)
		return "It has a different format, such as that of another version.";
	INIT_CRC32C(crc);
	COMP_CRC32C(crc, content, size);
	FIN_CRC32C(crc);
	if (!EQ_CRC32C(crc, saved_crc))
		return DAMAGED;
	if (header->major != expected.major)
		return "It is from another major version of PostgreSQL.";
	if (memcmp(header, &expected, offsetof(PersistHeader, reset_timestamp)) != 0)
		return "It has a different format, such as that of another version.";
	for (int i = 0; i < NUM_SECTIONS; i++)
	{
		Size		entry_size = sections[i].entry_size;
		int64		count = 0;

		if (end - at >= (ptrdiff_t) sizeof(count))
			memcpy(&count, at, sizeof(count));
		at += sizeof(count);
		/* only a bug of ours can have put another number there */
		if (count < 0 || at > end || count > (end - at) / (ptrdiff_t) entry_size)
			return DAMAGED;
		for (; count > 0; count--, at += entry_size)
			sections[i].restore(at);
	}
	cut_timestamp(&header->reset_timestamp);
	slot_restore_reset_timestamp(header->reset_timestamp);
	return NULL;
}

static const char *
use_file(FILE *file)
{
	const char *complaint = "It could not be read.";
	struct stat st;
	char	   *content;
	pg_crc32c	crc;
	size_t		size;

	if (fstat(fileno(file), &st) != 0)
		return complaint;
	if (st.st_size < (off_t) (sizeof(PersistHeader) + sizeof(crc)))
		return DAMAGED;
	size = st.st_size - sizeof(crc);
	content = palloc_extended(size, MCXT_ALLOC_HUGE | MCXT_ALLOC_NO_OOM);
	if (content == NULL)
		return "There is not enough memory to read it.";
	if (fread(content, size, 1, file) == 1 && fread(&crc, sizeof(crc), 1, file) == 1)
		complaint = use_content(content, size, crc);
	pfree(content);
	return complaint;
}

/*
 * Load what was saved.  Never fails: without a good file there is nothing.
 * Where that is not wanted, a file that is there is of no use either, but is
 * left until the server is up.
 */
void
persist_load(void)
{
	FILE	   *file;
	const char *complaint;

	/* a leftover from a shutdown that was cut short */
	unlink(PERSIST_FILE ".tmp");

	if (!pgnetlat_save)
		return;
	file = AllocateFile(PERSIST_FILE, PG_BINARY_R);
	if (file == NULL)
	{
		if (errno != ENOENT)
			ereport(LOG,
					(errcode_for_file_access(),
					 errmsg("could not read file \"%s\": %m", PERSIST_FILE)));
		return;
	}
	complaint = was_shut_down(false) ? use_file(file) :
		"The server was not shut down cleanly after the file was written.";
	FreeFile(file);
	if (complaint == NULL)
		return;
	ereport(LOG,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("ignoring file \"%s\"", PERSIST_FILE),
			 errdetail("%s", complaint),
			 errhint("The statistics of pgnetlat start from zero.")));
	remove_file();
}
