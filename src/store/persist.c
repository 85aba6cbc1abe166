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
 * The file is for the same library and the same major version on the same
 * machine, as its header says, and a checksum covers everything.  A file that
 * is foreign, truncated or damaged is logged and discarded.  After that, each
 * value is checked: none may be one that no table can hold.  An entry with one
 * that is, which only an error of ours can have put there, is logged and left
 * out; the others are none the worse for it.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "blockers.h"
#include "catalog/pg_control.h"
#include "clients.h"
#include "common/controldata_utils.h"
#include "settings.h"
#include "history.h"
#include "miscadmin.h"
#include "persist.h"
#include "pools.h"
#include "pgstat.h"
#include "port/pg_crc32c.h"
#include "session_slot.h"
#include "statements.h"
#include "storage/fd.h"
#include "utils/timestamp.h"

#define PERSIST_FILE		"pg_stat/pgnetlat.stat"
#define PERSIST_MAGIC		0x504E4C32	/* "PNL2"; changes with the format */

/* In the order in which they are in the file. */
typedef enum PersistSection
{
	SECTION_STATEMENTS,
	SECTION_CLIENTS,
	SECTION_HISTORY,
	SECTION_BLOCKERS,
	SECTION_POOLS,
	NUM_SECTIONS
} PersistSection;

typedef struct PersistHeader
{
	uint32		magic;
	uint32		major;
	uint32		entry_size[NUM_SECTIONS];
	int32		count[NUM_SECTIONS];
	TimestampTz reset_timestamp;
	uint32		header_size;
	pg_crc32c	crc;			/* of what follows, and of what is above */
} PersistHeader;

StaticAssertDecl(sizeof(PersistHeader) == offsetof(PersistHeader, crc) + sizeof(pg_crc32c),
				 "PersistHeader must not have padding: the checksum covers it");

static DBState
cluster_state(void)
{
	bool		crc_ok;
	ControlFileData *control = get_controlfile(DataDir, &crc_ok);

	return crc_ok ? control->state : DB_STARTUP;
}

/*
 * Is this an orderly shutdown?  The exit code does not tell: the postmaster
 * leaves an immediate one with 0 as well.  Backends may then have died while
 * they wrote to shared memory, or with our locks held.
 */
static bool
shutdown_is_orderly(void)
{
	DBState		state = cluster_state();

	return state == DB_SHUTDOWNED || state == DB_SHUTDOWNED_IN_RECOVERY;
}

/*
 * May a file that is there when the server starts be of what it did last?
 * Also where the start of a standby has failed since then: had it come up,
 * there would be no file.
 */
static bool
file_is_current(void)
{
	return shutdown_is_orderly() || cluster_state() == DB_IN_ARCHIVE_RECOVERY;
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
 * Are entries plausible?
 * ---------------------------------------------------------------------------
 */

/*
 * Structures of nothing but counts and times: none is negative, or so large that
 * two of them cannot be added.  That is 146 years of sessions, in one value: 53
 * days of 1,000 that are idle.
 */
static bool
counters_are_valid(const void *counters, size_t size)
{
	const int64 *values = counters;

	for (size_t i = 0; i < size / sizeof(int64); i++)
	{
		if (values[i] < 0 || values[i] > PG_INT64_MAX / 2)
			return false;
	}
	return true;
}

/*
 * Is what parts, of which none is negative, sum up to no more than the whole?
 * The sum itself might overflow.
 */
static bool
parts_are_valid(const int64 *part, int count, int64 whole)
{
	for (int i = 0; i < count; i++)
	{
		if (part[i] > whole)
			return false;
		whole -= part[i];
	}
	return true;
}

/* Nothing is more than what it is a part of. */
static bool
totals_are_valid(const LedgerTotals *totals)
{
	return counters_are_valid(totals, sizeof(*totals)) &&
		parts_are_valid(totals->exec_part, NUM_EXEC_PARTS, totals->exec) &&
		totals->run_queue_wait <= totals->client && totals->pooler_requests <= totals->requests;
}

static bool
usage_is_valid(double usage)
{
	return usage >= 0 && usage <= (double) PG_INT64_MAX;	/* nor not a number */
}

/* A byte that is neither 0 nor 1 is no bool. */
static bool
flag_is_valid(const bool *flag)
{
	return *(const uint8 *) flag <= 1;
}

static bool
is_zero(const void *data, size_t size)
{
	const char *bytes = data;

	for (size_t i = 0; i < size; i++)
	{
		if (bytes[i] != 0)
			return false;
	}
	return true;
}

static bool
statement_is_valid(const void *saved)
{
	const StatementEntry *entry = saved;
	bool		evicted = is_zero(&entry->key, sizeof(entry->key));

	return (evicted || (OidIsValid(entry->key.userid) && OidIsValid(entry->key.dbid))) &&
		usage_is_valid(entry->usage) && IS_VALID_TIMESTAMP(entry->since) &&
		counters_are_valid(&entry->counters, sizeof(entry->counters)) &&
		parts_are_valid((const int64 *) &entry->counters.split,
						sizeof(ExecSplit) / sizeof(int64), entry->counters.totals.exec);
}

/* Keys are hashed as bytes: what is unused must be zero. */
static bool
client_key_is_valid(const ClientKey *key)
{
	size_t		address = key->family == AF_INET ? 4 : key->family == AF_INET6 ? 16 : 0;
	size_t		name = strnlen(key->application_name, NAMEDATALEN);

	return (key->family == 0 || address > 0) &&
		is_zero(key->address + address, sizeof(key->address) - address) &&
		name < NAMEDATALEN &&
		is_zero(key->application_name + name, NAMEDATALEN - name);
}

/* Parts of one time, in two ways. */
static bool
connect_totals_are_valid(const ConnectTotals *totals)
{
	return parts_are_valid(&totals->start, 3, totals->time) &&
		parts_are_valid(&totals->network, 2, totals->time);
}

static bool
pooler_is_valid(const ClientPooler *pooler)
{
	size_t		address = pooler->family == AF_INET ? 4 : pooler->family == AF_INET6 ? 16 : 0;

	return (pooler->known == 1 || is_zero(pooler, sizeof(*pooler))) &&
		(pooler->family == 0 || address > 0) &&
		is_zero(pooler->address + address, sizeof(pooler->address) - address);
}

static bool
client_is_valid(const void *saved)
{
	const ClientEntry *entry = saved;
	const ClientKey *key = &entry->key;

	if (!flag_is_valid(&entry->is_evicted) || !client_key_is_valid(key))
		return false;
	if (entry->is_evicted)
	{
		ClientKey	other = {.datid = key->datid};

		if (memcmp(key, &other, sizeof(other)) != 0)
			return false;
	}
	else if (!OidIsValid(key->datid) || !OidIsValid(key->userid))
		return false;
	return usage_is_valid(entry->usage) && IS_VALID_TIMESTAMP(entry->since) &&
		pooler_is_valid(&entry->pooler) && is_zero(&entry->live, sizeof(entry->live)) &&
		totals_are_valid(&entry->counters.totals) &&
		counters_are_valid(&entry->counters, sizeof(entry->counters)) &&
		connect_totals_are_valid(&entry->counters.connect);
}

static bool
history_row_is_valid(const HistoryRow *row, bool has_database)
{
	return flag_is_valid(&row->used) &&
		OidIsValid(row->datid) == (row->used && has_database) &&
		totals_are_valid(&row->totals) &&
		counters_are_valid(&row->retransmits,
						   sizeof(*row) - offsetof(HistoryRow, retransmits));
}

static bool
interval_is_valid(const void *saved)
{
	const HistoryInterval *interval = saved;

	if (!IS_VALID_TIMESTAMP(interval->start) || !IS_VALID_TIMESTAMP(interval->end) ||
		interval->start > interval->end)
		return false;
	for (int i = 0; i <= HISTORY_DATABASES; i++)
	{
		if (!history_row_is_valid(&interval->rows[i], i < HISTORY_DATABASES))
			return false;
	}
	return true;
}

/* Its parts are no more than the whole. */
static bool
blocker_counters_are_valid(const BlockerCounters *counters)
{
	return counters_are_valid(counters, sizeof(*counters)) &&
		parts_are_valid(&counters->exec, BLOCKER_PARTS, counters->blocked);
}

static bool
blocker_is_valid(const void *saved)
{
	const BlockerEntry *entry = saved;
	const BlockerKey *key = &entry->key;
	size_t		type = strnlen(key->backend_type, NAMEDATALEN);
	bool		evicted = is_zero(key, sizeof(*key));

	if (!client_key_is_valid(&key->client) || key->unused != 0 || type == NAMEDATALEN ||
		!is_zero(key->backend_type + type, NAMEDATALEN - type))
		return false;
	return (evicted || type > 0) &&
		usage_is_valid(entry->usage) && IS_VALID_TIMESTAMP(entry->since) &&
		is_zero(&entry->live, sizeof(entry->live)) &&
		blocker_counters_are_valid(&entry->counters);
}

static bool
pool_is_valid(const void *saved)
{
	const PoolCopy *pool = saved;
	const Concurrency *distribution = &pool->distribution;
	bool		is_of_role = pool->kind == POOL_OF_ROLE;

	return pool->kind >= POOL_OF_ROLE && pool->kind <= POOL_EVICTED && pool->unused == 0 &&
		OidIsValid(pool->key.datid) == is_of_role && OidIsValid(pool->key.userid) == is_of_role &&
		usage_is_valid(pool->usage) && IS_VALID_TIMESTAMP(pool->since) &&
		counters_are_valid(&pool->time, offsetof(PoolCopy, distribution) - offsetof(PoolCopy, time)) &&
		pool->sessions == 0 && pool->busy == 0 &&
		pool->sessions_max <= INT_MAX && pool->busy_max <= INT_MAX &&
		counters_are_valid(distribution, sizeof(*distribution)) &&
		parts_are_valid(distribution->weight, CONCURRENCY_BUCKETS, PG_INT64_MAX / 4);
}

/* ---------------------------------------------------------------------------
 * What is saved
 * ---------------------------------------------------------------------------
 */

static void *
copy_statements(int *count)
{
	return statements_copy(count);
}

static void
restore_statement(const void *saved)
{
	statements_restore(saved);
}

/* No session lives on. */
static void *
copy_clients(int *count)
{
	ClientEntry *entries = clients_copy(count);

	for (int i = 0; i < *count; i++)
		memset(&entries[i].live, 0, sizeof(entries[i].live));
	return entries;
}

static void
restore_client(const void *saved)
{
	clients_restore(saved);
}

static void *
copy_history(int *count)
{
	return history_copy(GetCurrentTimestamp(), count);
}

static void
restore_interval(const void *saved)
{
	history_restore(saved);
}

/* Nobody waits any more. */
static void *
copy_blockers(int *count)
{
	BlockerEntry *entries = blockers_copy(count);

	for (int i = 0; i < *count; i++)
		memset(&entries[i].live, 0, sizeof(entries[i].live));
	return entries;
}

static void
restore_blocker(const void *saved)
{
	blockers_restore(saved);
}

/* Nobody is connected any more. */
static void *
copy_pools(int *count)
{
	PoolCopy   *pools = pools_copy(count);

	for (int i = 0; i < *count; i++)
		pools[i].sessions = pools[i].busy = 0;
	return pools;
}

static void
restore_pool(const void *saved)
{
	pools_restore(saved);
}

typedef struct SectionSpec
{
	const char *name;			/* of what it consists of, for the log */
	uint32		entry_size;
	void	   *(*copy) (int *count);	/* palloc'd */
	bool		(*is_valid) (const void *saved);
	void		(*restore) (const void *saved);
} SectionSpec;

static const SectionSpec sections[NUM_SECTIONS] = {
	[SECTION_STATEMENTS] = {"statements", sizeof(StatementEntry), copy_statements,
	statement_is_valid, restore_statement},
	[SECTION_CLIENTS] = {"client groups", sizeof(ClientEntry), copy_clients,
	client_is_valid, restore_client},
	[SECTION_HISTORY] = {"intervals of the history", sizeof(HistoryInterval), copy_history,
	interval_is_valid, restore_interval},
	[SECTION_BLOCKERS] = {"blockers", sizeof(BlockerEntry), copy_blockers,
	blocker_is_valid, restore_blocker},
	[SECTION_POOLS] = {"pools", sizeof(PoolCopy), copy_pools,
	pool_is_valid, restore_pool},
};

/* ---------------------------------------------------------------------------
 * Saving
 * ---------------------------------------------------------------------------
 */

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
write_body(Writer *writer)
{
	for (int i = 0; i < NUM_SECTIONS; i++)
	{
		const SectionSpec *section = &sections[i];
		int32	   *count = &writer->header.count[i];
		char	   *entries = section->copy(count);

		for (int j = 0; j < *count; j++)
		{
			const char *entry = entries + (Size) j * section->entry_size;

			Assert(section->is_valid(entry));
			write_chunk(writer, entry, section->entry_size);
		}
		pfree(entries);
	}
	COMP_CRC32C(writer->header.crc, &writer->header, offsetof(PersistHeader, crc));
	FIN_CRC32C(writer->header.crc);
}

static bool
write_file(Writer *writer)
{
	memset(&writer->header, 0, sizeof(writer->header));
	writer->header.magic = PERSIST_MAGIC;
	writer->header.major = PG_VERSION_NUM / 100;
	for (int i = 0; i < NUM_SECTIONS; i++)
		writer->header.entry_size[i] = sections[i].entry_size;
	writer->header.reset_timestamp = slot_reset_timestamp();
	writer->header.header_size = sizeof(PersistHeader);
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
 * Save everything, as the postmaster's last deed.
 */
void
persist_save(int code, Datum arg)
{
	Writer		writer = {0};
	bool		written;

	if (code != 0 || !shutdown_is_orderly())
		return;
	if (!pgnetlat_save)
	{
		remove_file();
		return;
	}

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

/* ---------------------------------------------------------------------------
 * Loading
 * ---------------------------------------------------------------------------
 */

/* Are the entries those of this library? */
static bool
format_is_ours(const PersistHeader *header)
{
	if (header->magic != PERSIST_MAGIC || header->header_size != sizeof(PersistHeader))
		return false;
	for (int i = 0; i < NUM_SECTIONS; i++)
	{
		if (header->entry_size[i] != sections[i].entry_size)
			return false;
	}
	return true;
}

/* What the header says that follows, in bytes; -1 if that cannot be. */
static int64
expected_body_size(const PersistHeader *header)
{
	int64		size = 0;

	for (int i = 0; i < NUM_SECTIONS; i++)
	{
		if (header->count[i] < 0)
			return -1;
		size += (int64) header->count[i] * sections[i].entry_size;
	}
	return size;
}

/* NULL if it is, as far as its header tells, or what is wrong. */
static const char *
header_complaint(const PersistHeader *header, size_t body_size)
{
	if (!format_is_ours(header))
		return "It has a different format, such as that of another version.";
	if (header->major != PG_VERSION_NUM / 100)
		return "It is from another major version of PostgreSQL.";
	if (expected_body_size(header) != (int64) body_size)
		return "It is truncated or damaged.";
	return NULL;
}

/*
 * Restore the entries of one section, which "body" begins with, but for those
 * that are not valid.  Each is copied first, for alignment.
 */
static void
use_section(const SectionSpec *section, const char *body, int count)
{
	void	   *entry = palloc(section->entry_size);
	int			refused = 0;

	for (int i = 0; i < count; i++)
	{
		memcpy(entry, body + (Size) i * section->entry_size, section->entry_size);
		if (section->is_valid(entry))
			section->restore(entry);
		else
			refused++;
	}
	pfree(entry);
	if (refused > 0)
		ereport(LOG,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("ignoring %d of %d %s in file \"%s\"",
						refused, count, section->name, PERSIST_FILE),
				 errdetail("They have invalid values."),
				 errhint("Please report this as a bug of pgnetlat.")));
}

/* Check what was read, and restore it if nothing is wrong with it as a whole. */
static const char *
use_body(const PersistHeader *header, const char *body, size_t size)
{
	pg_crc32c	crc;

	INIT_CRC32C(crc);
	COMP_CRC32C(crc, body, size);
	COMP_CRC32C(crc, header, offsetof(PersistHeader, crc));
	FIN_CRC32C(crc);
	if (!EQ_CRC32C(crc, header->crc))
		return "It is truncated or damaged.";
	if (!IS_VALID_TIMESTAMP(header->reset_timestamp))
		return "It contains invalid values.";
	for (int i = 0; i < NUM_SECTIONS; i++)
	{
		use_section(&sections[i], body, header->count[i]);
		body += (Size) header->count[i] * sections[i].entry_size;
	}
	slot_restore_reset_timestamp(header->reset_timestamp);
	return NULL;
}

/* Read the file, and use it; NULL if that is done, or why it is not. */
static const char *
use_file(FILE *file)
{
	struct stat st;
	PersistHeader header;
	char	   *body;
	size_t		size;
	const char *complaint;

	if (fstat(fileno(file), &st) != 0 || st.st_size < (off_t) sizeof(header) ||
		fread(&header, sizeof(header), 1, file) != 1)
		return "It is truncated or damaged.";
	size = st.st_size - sizeof(header);
	complaint = header_complaint(&header, size);
	if (complaint)
		return complaint;
	body = palloc_extended(size + 1, MCXT_ALLOC_HUGE | MCXT_ALLOC_NO_OOM);
	if (body == NULL)
		return "There is not enough memory to read it.";
	if (size > 0 && fread(body, size, 1, file) != 1)
		complaint = "It could not be read.";
	else
		complaint = use_body(&header, body, size);
	pfree(body);
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
	complaint = file_is_current() ? use_file(file) :
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
