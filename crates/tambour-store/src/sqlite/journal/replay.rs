//! Replay of the journal into the database after a crash.
//!
//! All intact records are copied, including those after damage. A missing record counts as lost only if the
//! database does not have its data either. After a loss that is not accepted the start fails, and no file of
//! the journal is changed.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use sqlx::SqlitePool;

use super::extent::{self, KnownSegment};
use super::loss::{DamagedFile, JournalReport, ShortFile};
use super::record::{EntryRange, FoundRecord, RecordSubject, read_u32, read_u64};
use super::scan::{self, DamagedRange, SegmentPart, UnknownVersion};
use super::{SEGMENT_HEADER, list_segments};
use crate::sqlite::commit::{insert_message, insert_record, insert_rows};
use crate::sqlite::server_identity;
use crate::sqlite::transaction::OpenTransaction;
use crate::{Batch, MessageRow, StoreError};
use crate::{data_folder, fail};

/// Bytes of rows after which a transaction is written.
const TRANSACTION_BYTES: usize = 4 << 20;

/// Maximum number of lost entries of a message that get placeholders. A damaged number must not fill the
/// disk.
const MAX_PLACEHOLDERS: u64 = 1 << 20;

/// Result of a replay.
pub(in crate::sqlite) struct ReplayResult {
    /// Number of the segment to begin now.
    pub(in crate::sqlite) next_segment: u64,
    pub(in crate::sqlite) report: JournalReport,
}

/// Copies data that only the journal has into the database, and removes its segments. Damaged ones are kept
/// under another name.
///
/// # Errors
/// The database failed, a file cannot be read or removed or is of a later version, or data is lost and
/// `accept_loss` is not set.
pub(in crate::sqlite) async fn replay(
    folder: &Path,
    pool: &SqlitePool,
    durable: bool,
    accept_loss: bool,
) -> Result<ReplayResult, StoreError> {
    let is_new_database = server_identity::is_new_database(pool).await?;
    let known_segments = extent::load_extents(pool).await?;
    let all_files = if folder.exists() { list_segments(folder)? } else { Vec::new() };
    // The database has all data of the segments before the first one that it lists. A process that died
    // before it removed them left them behind.
    let first_known = known_segments.first().map_or(0, |known| known.number);
    let (replayed_files, files): (Vec<_>, Vec<_>) =
        all_files.into_iter().partition(|(number, _)| *number < first_known);
    let mut reader = ReplayReader::new(pool, is_new_database);
    reader.import_table().await?;
    for known in &known_segments {
        let is_empty = known.length <= SEGMENT_HEADER.len() as u64;
        if !is_empty && !files.iter().any(|(number, _)| *number == known.number) {
            reader.report_short(known, folder.join(format!("{:016}.log", known.number)), None);
        }
    }
    for (number, file) in &files {
        reader.read_segment(file, known_segments.iter().find(|known| known.number == *number)).await?;
    }
    reader.complete_report().await?;
    log_report(&reader.report, accept_loss);
    if !reader.report.loss.is_empty() && !accept_loss {
        return Err(StoreError::Loss(Box::new(reader.report.loss)));
    }
    let report = reader.report;
    let last_known = known_segments.last().map(|known| known.number);
    let last = files.last().map(|(number, _)| *number).max(last_known);
    let next_segment = last.unwrap_or(0) + 1;
    fail::point("journal.before");
    extent::reset_extents(pool, next_segment, durable).await?;
    for (_, file) in replayed_files.into_iter().chain(files) {
        retire_file(&file, &report)?;
        fail::point("journal.amid");
    }
    if durable && folder.exists() {
        // Without the sync a removed file could return after a power cut, with data deleted meanwhile.
        data_folder::sync_folder(folder)?;
    }
    fail::point("journal.after");
    Ok(ReplayResult { next_segment, report })
}

/// Stores placeholders for the lost entries of running messages. Clients may have seen their numbers, and the
/// end that is added to these messages must follow them.
pub(in crate::sqlite) async fn reserve_numbers(
    pool: &SqlitePool,
    report: &JournalReport,
) -> Result<(), StoreError> {
    let mut rows = Vec::new();
    for (message, last_written) in &report.last_written {
        let query = sqlx::query_scalar(
            "select coalesce((select max(last) from entries where message_id = id), 0) from messages \
             where id = ? and status = 'running'",
        );
        let last: Option<i64> = query.bind(message).fetch_optional(pool).await?;
        let Some(last) = last.map(i64::cast_unsigned) else { continue };
        if last < *last_written && last_written - last <= MAX_PLACEHOLDERS {
            let body = Batch::placeholders(last + 1, *last_written).body().to_vec();
            rows.push(EntryRange { message: message.clone(), first: last + 1, last: *last_written, body });
        }
    }
    let mut transaction = OpenTransaction::begin(pool).await?;
    let insertion = insert_rows(&mut transaction, &rows).await;
    Ok(transaction.end(insertion).await?)
}

/// Removes a segment, or renames it if it is damaged.
fn retire_file(file: &Path, report: &JournalReport) -> Result<(), StoreError> {
    let is_damaged = report.damaged.iter().any(|damaged_file| damaged_file.file == file) || {
        // The report does not cover a segment that an earlier start has replayed but not removed.
        let parts = scan::scan_segment(&std::fs::read(file)?).unwrap_or_default();
        parts.iter().any(|part| matches!(part, SegmentPart::Damage(_)))
    };
    if !is_damaged {
        return Ok(std::fs::remove_file(file)?);
    }
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut kept_file = file.with_file_name(format!("{name}.damaged"));
    let mut suffix = 1;
    while kept_file.exists() {
        suffix += 1;
        kept_file = file.with_file_name(format!("{name}.{suffix}.damaged"));
    }
    std::fs::rename(file, &kept_file)?;
    tracing::warn!(file = %kept_file.display(), "the damaged file is kept; the server no longer reads it");
    Ok(())
}

/// Logs damage and losses.
fn log_report(report: &JournalReport, accept_loss: bool) {
    for DamagedFile { file, ranges, records } in &report.damaged {
        let (offset, bytes) = ranges.first().copied().unwrap_or_default();
        let (file, places) = (file.display(), ranges.len());
        tracing::error!(%file, offset, bytes, places, records, "the journal is damaged; reading intact records");
    }
    let loss = &report.loss;
    if !loss.is_empty() {
        let (gone, cut, open, unknown) = (
            loss.lost_messages.len(),
            loss.truncated_messages.len(),
            loss.unfinished_messages.len(),
            loss.unknown_records,
        );
        let accepted = accept_loss;
        tracing::error!(gone, cut, open, unknown, accepted, "messages were lost with a part of the journal");
    }
}

/// Reader of segments that collects rows for the database, and reports losses.
struct ReplayReader<'a> {
    pool: &'a SqlitePool,
    /// True if this start has created the database.
    is_new_database: bool,
    /// Ends of the logs of the messages that the journal has named so far, by message id.
    message_ends: HashMap<String, MessageEnd>,
    /// New messages for the next transaction.
    messages: Vec<MessageRow>,
    /// Entries for the next transaction.
    rows: Vec<EntryRange>,
    /// Rows with the outcomes of messages, for the next transaction.
    outcome_rows: Vec<MessageRow>,
    /// Approximate bytes of the next transaction.
    bytes: usize,
    /// Set when a part of the journal is damaged or missing.
    is_damaged: bool,
    /// Number of new messages read.
    message_count: u64,
    report: JournalReport,
}

/// End of a message's log in the database, with the rows that were read so far.
#[derive(Clone, Copy)]
struct MessageEnd {
    /// Number of the last entry, 0 if there is none.
    last: u64,
    /// True if the row of the message exists.
    has_row: bool,
}

impl<'a> ReplayReader<'a> {
    fn new(pool: &'a SqlitePool, is_new_database: bool) -> ReplayReader<'a> {
        ReplayReader {
            pool,
            is_new_database,
            message_ends: HashMap::new(),
            messages: Vec::new(),
            rows: Vec::new(),
            outcome_rows: Vec::new(),
            bytes: 0,
            is_damaged: false,
            message_count: 0,
            report: JournalReport::default(),
        }
    }

    /// Reads one segment. `known` is its extent in the database, if it is listed there.
    async fn read_segment(&mut self, file: &PathBuf, known: Option<&KnownSegment>) -> Result<(), StoreError> {
        let bytes = std::fs::read(file)?;
        let parts = scan::scan_segment(&bytes)
            .map_err(|UnknownVersion| StoreError::LaterJournal(file.display().to_string()))?;
        let mut damaged_ranges: Vec<(u64, u64)> = Vec::new();
        // `end`: offset up to which nothing is missing. The database may know of more.
        let (mut damaged_records, mut end) = (0, bytes.len());
        for part in parts {
            match part {
                SegmentPart::Record(FoundRecord::Message(row)) => self.add_message(*row).await?,
                SegmentPart::Record(FoundRecord::Entries(entries)) => self.add_entries(entries).await?,
                SegmentPart::Record(FoundRecord::End(entries, row)) => self.add_end(entries, *row).await?,
                SegmentPart::Record(FoundRecord::Other) => {}
                SegmentPart::Damage(damage) => {
                    damaged_ranges.push((damage.offset as u64, damage.bytes as u64));
                    damaged_records += u64::from(damage.records);
                    self.compare_damage(damage).await?;
                }
                SegmentPart::Torn { offset, bytes, end: record_end, subject } => {
                    // Present if the database knows of bytes after the offset: the record was complete once.
                    let known_beyond = known.filter(|known| known.length > offset as u64);
                    end = match (known_beyond, record_end) {
                        // The database has the record's data.
                        (Some(_), Some(record_end)) if self.has_subject(subject.as_ref()).await? => {
                            record_end
                        }
                        (Some(_), _) => offset,
                        // The database expects nothing after the offset, so nothing is missing.
                        (None, _) => usize::MAX,
                    };
                    if known_beyond.is_none() {
                        // The process was killed while it wrote the record, or a power cut lost its end: no
                        // reader had seen it.
                        tracing::warn!(
                            file = %file.display(), offset, bytes,
                            "the journal ends in a record that was cut off while it was written; ignoring it"
                        );
                    }
                    if let Some(RecordSubject::Entries { message, last, .. }) = subject {
                        let message_end = *self.message_end(&message).await?;
                        let is_unexplained = known_beyond.is_some_and(|known| !known.has_rebooted());
                        match is_unexplained && message_end.last < last {
                            true => self.report_loss(message, message_end, last),
                            false => self.note_written(message, last),
                        }
                    }
                }
            }
        }
        if !damaged_ranges.is_empty() {
            self.report.damaged.push(DamagedFile {
                file: file.clone(),
                ranges: damaged_ranges,
                records: damaged_records,
            });
        }
        if let Some(known) = known.filter(|known| known.length > end as u64) {
            self.report_short(known, file.clone(), Some(bytes.len() as u64));
        }
        Ok(())
    }

    /// Reports a file that is missing (`found_bytes` is `None`), or shorter than the database recorded. If a
    /// power cut explains that, no loss is reported, since such data may be lost without `durable`.
    fn report_short(&mut self, known: &KnownSegment, file: PathBuf, found_bytes: Option<u64>) {
        let (is_excused, known_bytes) = (known.has_rebooted(), known.length);
        tracing::error!(
            file = %file.display(), known_bytes, found_bytes, power_cut = is_excused,
            "a file of the journal is shorter than the database recorded"
        );
        self.is_damaged = true;
        if !is_excused {
            self.report.loss.short.push(ShortFile { file, known_bytes, found_bytes });
        }
    }

    /// Returns `true` if the database, with the records read so far, has the subject of a record.
    async fn has_subject(&mut self, subject: Option<&RecordSubject>) -> Result<bool, StoreError> {
        Ok(match subject {
            Some(RecordSubject::Probe) => true,
            Some(RecordSubject::Message(id)) => self.message_end(id).await?.has_row,
            Some(RecordSubject::Entries { message, last, .. }) => {
                self.message_end(message).await?.last >= *last
            }
            None => false,
        })
    }

    /// Reports what the unreadable records of a damaged range contained, unless the database has it.
    async fn compare_damage(&mut self, damage: DamagedRange) -> Result<(), StoreError> {
        self.is_damaged = true;
        match damage.subject {
            Some(RecordSubject::Probe) => {}
            Some(RecordSubject::Message(id)) => {
                if !self.message_end(&id).await?.has_row {
                    self.report.loss.lost_messages.insert(id);
                }
            }
            Some(RecordSubject::Entries { message, last, .. }) => {
                let message_end = *self.message_end(&message).await?;
                if message_end.last < last {
                    self.report_loss(message, message_end, last);
                }
            }
            None => self.report.loss.unknown_records += u64::from(damage.records),
        }
        Ok(())
    }

    /// Notes that entries of a message up to `last` were written, even if they are lost.
    fn note_written(&mut self, message: String, last: u64) {
        let last_written = self.report.last_written.entry(message).or_default();
        *last_written = last.max(*last_written);
    }

    /// Reports that the entries of a message after `message_end` are lost, at least up to `last`.
    fn report_loss(&mut self, message: String, message_end: MessageEnd, last: u64) {
        self.note_written(message.clone(), last);
        if message_end.has_row {
            self.report.loss.truncated_messages.insert(message, message_end.last);
        } else {
            self.report.loss.lost_messages.insert(message);
        }
    }

    /// Returns the end of a message's log; initially its end in the database.
    async fn message_end(&mut self, message: &str) -> Result<&mut MessageEnd, StoreError> {
        if !self.message_ends.contains_key(message) {
            let query = sqlx::query_as(
                "select coalesce((select max(last) from entries where message_id = ?1), 0), \
                 exists (select 1 from messages where id = ?1)",
            );
            let (last, has_row): (i64, bool) = query.bind(message).fetch_one(self.pool).await?;
            self.message_ends.insert(message.to_owned(), MessageEnd { last: last.cast_unsigned(), has_row });
        }
        Ok(self.message_ends.get_mut(message).expect("the end has just been inserted"))
    }

    /// Adds a new message.
    async fn add_message(&mut self, mut row: MessageRow) -> Result<(), StoreError> {
        self.message_end(&row.id).await?.has_row = true;
        self.message_count += 1;
        // The server that ran the message is dead, since only one server at a time uses the journal. It may
        // have had another database, so its identity means nothing here.
        (row.server, row.epoch) = (None, None);
        self.bytes += row.request.len();
        self.messages.push(row);
        if self.bytes >= TRANSACTION_BYTES { self.flush().await } else { Ok(()) }
    }

    /// Adds the end of a message. The end is ignored if entries before it are missing: the message then gets
    /// another end.
    async fn add_end(&mut self, entries: EntryRange, row: MessageRow) -> Result<(), StoreError> {
        let last = entries.last;
        if !entries.body.is_empty() {
            self.add_entries(entries).await?;
        }
        let MessageEnd { last: stored_last, has_row } = *self.message_end(&row.id).await?;
        if has_row && stored_last >= last {
            self.outcome_rows.push(row);
        }
        Ok(())
    }

    /// Adds the entries, except those that the database already has.
    async fn add_entries(&mut self, entries: EntryRange) -> Result<(), StoreError> {
        let message_end = *self.message_end(&entries.message).await?;
        if entries.last <= message_end.last {
            return Ok(());
        }
        if !message_end.has_row {
            // The row is lost with a part of the journal, or the message was deleted.
            if self.is_new_database || self.is_damaged {
                self.report.loss.lost_messages.insert(entries.message);
            } else {
                let message_id = entries.message;
                tracing::warn!(message_id, "ignoring entries of a message that does not exist");
            }
            return Ok(());
        }
        if entries.first > message_end.last + 1 {
            // Entries before them are missing, and numbers have no gaps.
            self.report_loss(entries.message, message_end, entries.last);
            return Ok(());
        }
        if let Some(new_end) = self.message_ends.get_mut(&entries.message) {
            new_end.last = entries.last;
        }
        if entries.first <= message_end.last {
            self.add_overlap(entries, message_end.last);
        } else {
            self.bytes += entries.body.len();
            match self.rows.iter_mut().rev().find(|row| row.message == entries.message) {
                Some(row) if row.last + 1 == entries.first && row.body.len() < TRANSACTION_BYTES => {
                    row.last = entries.last;
                    row.body.extend_from_slice(&entries.body);
                }
                _ => self.rows.push(entries),
            }
        }
        if self.bytes >= TRANSACTION_BYTES { self.flush().await } else { Ok(()) }
    }

    /// Adds the entries after number `stored_last`, the last entry that is stored already.
    fn add_overlap(&mut self, entries: EntryRange, stored_last: u64) {
        let EntryRange { message, first, last, body } = entries;
        let stored_count = usize::try_from(stored_last + 1 - first).unwrap_or(usize::MAX);
        let line_end = memchr::memchr_iter(b'\n', &body).nth(stored_count - 1);
        let body = body[line_end.map_or(body.len(), |line_end| line_end + 1)..].to_vec();
        self.bytes += body.len();
        self.rows.push(EntryRange { message, first: stored_last + 1, last, body });
    }

    /// Writes the collected rows in one transaction.
    async fn flush(&mut self) -> Result<(), StoreError> {
        if self.rows.is_empty() && self.messages.is_empty() && self.outcome_rows.is_empty() {
            return Ok(());
        }
        let mut transaction = OpenTransaction::begin(self.pool).await?;
        let writes = async {
            for row in &self.messages {
                insert_message(&mut transaction, row).await?;
            }
            insert_rows(&mut transaction, &self.rows).await?;
            for row in &self.outcome_rows {
                insert_record(&mut transaction, row).await?;
            }
            Ok(())
        };
        let write_result = writes.await;
        transaction.end(write_result).await?;
        self.messages.clear();
        self.rows.clear();
        self.outcome_rows.clear();
        self.bytes = 0;
        Ok(())
    }

    /// Writes the remaining rows and completes the report.
    async fn complete_report(&mut self) -> Result<(), StoreError> {
        self.flush().await?;
        let JournalReport { damaged, loss, .. } = &mut self.report;
        if !loss.short.is_empty() {
            // Ended messages are fully in the database; unfinished ones may have lost entries.
            loss.unfinished_messages = list_unfinished(self.pool)
                .await?
                .into_iter()
                .filter(|id| !loss.truncated_messages.contains_key(id))
                .collect();
        }
        if !loss.is_empty() {
            loss.damaged.clone_from(damaged);
        }
        if self.is_new_database && self.message_count > 0 {
            let messages = self.message_count;
            tracing::warn!(
                messages,
                "the database is new and the journal is not: messages come from the journal, and what only the database had is lost"
            );
        }
        Ok(())
    }

    /// Imports the journal of early versions: a table with several records in each row, and no checksums.
    async fn import_table(&mut self) -> Result<(), StoreError> {
        let bodies: Vec<(Vec<u8>,)> =
            sqlx::query_as("select body from journal order by id").fetch_all(self.pool).await?;
        for (body,) in &bodies {
            let mut unread = body.as_slice();
            while let Some(entries) = parse_table_record(&mut unread) {
                self.add_entries(entries).await?;
            }
        }
        self.flush().await?;
        sqlx::query("delete from journal").execute(self.pool).await?;
        Ok(())
    }
}

/// Lists the messages in the database whose log has no end.
async fn list_unfinished(pool: &SqlitePool) -> Result<Vec<String>, StoreError> {
    let query = sqlx::query_as(
        "select id, (select body from entries where message_id = id order by first desc limit 1) \
         from messages where status = 'running' order by number",
    );
    let rows: Vec<(String, Option<Vec<u8>>)> = query.fetch_all(pool).await?;
    let has_end = |body: &[u8]| {
        let body = body.strip_suffix(b"\n").unwrap_or(body);
        let last_line = memchr::memrchr(b'\n', body).map_or(body, |at| &body[at + 1..]);
        last_line.starts_with(b"E completed ") || last_line.starts_with(b"E error ")
    };
    let unfinished_id =
        |(id, body): (String, Option<Vec<u8>>)| (!body.is_some_and(|body| has_end(&body))).then_some(id);
    Ok(rows.into_iter().filter_map(unfinished_id).collect())
}

/// Takes the first record off `unread`, the unread bytes of a table row; `None` at its end, or if it is
/// damaged.
fn parse_table_record(unread: &mut &[u8]) -> Option<EntryRange> {
    /// Takes a length of four bytes, and as many bytes as it says.
    fn take_bytes<'a>(unread: &mut &'a [u8]) -> Option<&'a [u8]> {
        let length = read_u32(unread)?;
        unread.split_off(..usize::try_from(length).ok()?)
    }
    let message = String::from_utf8(take_bytes(unread)?.to_vec()).ok()?;
    let (first, last) = (read_u64(unread)?, read_u64(unread)?);
    Some(EntryRange { message, first, last, body: take_bytes(unread)?.to_vec() })
}
