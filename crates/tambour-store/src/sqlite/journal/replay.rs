//! Replay of the journal into the database after a crash.
//!
//! Intact records are taken, including those after damage. A missing record counts as lost only if the
//! database does not have its data either. Unless the loss is accepted, the start fails then and no file is
//! changed.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use sqlx::SqlitePool;

use super::extent::{self, SegmentExtent};
use super::loss::{DamagedFile, JournalReport, ShortFile};
use super::record::{EntryRange, FoundRecord, RecordSubject};
use super::scan::{self, DamagedRange, SegmentPart};
use super::{SEGMENT_HEADER, list_segments};
use crate::sqlite::commit::{insert_message, insert_record, insert_rows};
use crate::sqlite::server_identity;
use crate::sqlite::transaction::OpenTransaction;
use crate::{Batch, MessageRow, StoreError};
use crate::{data_folder, fail};

/// Bytes of entries per transaction.
const TRANSACTION_BYTES: usize = 4 << 20;

/// Most lost entries of a message that are replaced by placeholders.
const MAX_PLACEHOLDERS: u64 = 1 << 20;

/// Result of a replay.
pub(in crate::sqlite) struct ReplayResult {
    /// Number of the next segment.
    pub(in crate::sqlite) next_segment: u64,
    pub(in crate::sqlite) report: JournalReport,
}

/// Copies data that only the journal has into the database, and removes its segments; damaged ones are
/// renamed and kept.
pub(in crate::sqlite) async fn replay(
    folder: &Path,
    pool: &SqlitePool,
    durable: bool,
    accept_loss: bool,
) -> Result<ReplayResult, StoreError> {
    let (is_new, extents) =
        (server_identity::is_new_database(pool).await?, extent::load_extents(pool).await?);
    let all = if folder.exists() { list_segments(folder)? } else { Vec::new() };
    // The database fully has the segments before the first that it names: they should have been removed.
    let first = extents.first().map_or(0, |extent| extent.number);
    let (replayed_files, files): (Vec<_>, Vec<_>) = all.into_iter().partition(|(number, _)| *number < first);
    let mut reader = ReplayReader::new(pool, is_new);
    reader.import_table().await?;
    for extent in &extents {
        let empty = extent.length <= SEGMENT_HEADER.len() as u64;
        if !empty && !files.iter().any(|(number, _)| *number == extent.number) {
            reader.report_short(extent, folder.join(format!("{:016}.log", extent.number)), None);
        }
    }
    for (number, file) in &files {
        reader.read_segment(file, extents.iter().find(|extent| extent.number == *number)).await?;
    }
    reader.complete_report().await?;
    log_report(&reader.report, accept_loss);
    if !reader.report.loss.is_empty() && !accept_loss {
        return Err(StoreError::Loss(Box::new(reader.report.loss)));
    }
    let report = reader.report;
    let last = files.last().map(|(number, _)| *number).max(extents.last().map(|extent| extent.number));
    let next_segment = last.unwrap_or(0) + 1;
    fail::point("journal.before");
    extent::reset_extents(pool, next_segment, durable).await?;
    for (_, file) in replayed_files.into_iter().chain(files) {
        retire_file(&file, &report)?;
        fail::point("journal.amid");
    }
    if durable && folder.exists() {
        // A file that returns after a power cut may hold data deleted meanwhile.
        data_folder::sync_folder(folder)?;
    }
    fail::point("journal.after");
    Ok(ReplayResult { next_segment, report })
}

/// Stores placeholders for lost entries: clients may have seen their numbers, and the end that the message
/// gets must follow them.
pub(in crate::sqlite) async fn reserve_numbers(
    pool: &SqlitePool,
    report: &JournalReport,
) -> Result<(), StoreError> {
    let mut rows = Vec::new();
    for (message, last_number) in &report.last_written {
        let query = sqlx::query_scalar(
            "select coalesce((select max(last) from entries where message_id = id), 0) from messages \
             where id = ? and status = 'running'",
        );
        let last: Option<i64> = query.bind(message).fetch_optional(pool).await?;
        let Some(last) = last.map(i64::cast_unsigned) else { continue };
        if last < *last_number && last_number - last <= MAX_PLACEHOLDERS {
            let body = Batch::placeholders(last + 1, *last_number).body().to_vec();
            rows.push(EntryRange { message: message.clone(), first: last + 1, last: *last_number, body });
        }
    }
    let mut connection = OpenTransaction::begin(pool).await?;
    let insertion = insert_rows(&mut connection, &rows).await;
    Ok(connection.end(insertion).await?)
}

/// Removes a file, or renames it if it is damaged.
fn retire_file(file: &Path, report: &JournalReport) -> Result<(), StoreError> {
    let is_damaged = report.damaged.iter().any(|damaged_file| damaged_file.file == file) || {
        // A file that the database fully had, left by a start that died before this point.
        let pieces = scan::scan_segment(&std::fs::read(file)?).unwrap_or_default();
        pieces.iter().any(|piece| matches!(piece, SegmentPart::Damage(_)))
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

/// Logs the findings.
fn log_report(report: &JournalReport, accepted: bool) {
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
        tracing::error!(gone, cut, open, unknown, accepted, "messages were lost with a part of the journal");
    }
}

struct ReplayReader<'a> {
    pool: &'a SqlitePool,
    /// True if the database was created by this start.
    is_new: bool,
    message_ends: HashMap<String, MessageEnd>,
    messages: Vec<MessageRow>,
    rows: Vec<EntryRange>,
    /// Outcomes of messages that end with these rows.
    ends: Vec<MessageRow>,
    bytes: usize,
    /// Set when a part of the journal is lost.
    is_damaged: bool,
    /// Number of messages read.
    message_count: u64,
    report: JournalReport,
}

/// State of a message that the journal names.
#[derive(Clone, Copy)]
struct MessageEnd {
    /// Last entry that its log has, or will have.
    last: u64,
    /// True if its row exists, or will.
    exists: bool,
}

impl<'a> ReplayReader<'a> {
    fn new(pool: &'a SqlitePool, is_new: bool) -> ReplayReader<'a> {
        ReplayReader {
            pool,
            is_new,
            message_ends: HashMap::new(),
            messages: Vec::new(),
            rows: Vec::new(),
            ends: Vec::new(),
            bytes: 0,
            is_damaged: false,
            message_count: 0,
            report: JournalReport::default(),
        }
    }

    async fn read_segment(
        &mut self,
        file: &PathBuf,
        extents: Option<&SegmentExtent>,
    ) -> Result<(), StoreError> {
        let bytes = std::fs::read(file)?;
        let pieces = scan::scan_segment(&bytes).map_err(|_| {
            let detail = format!("{} was written by a later version", file.display());
            StoreError::Folder(std::io::Error::other(detail))
        })?;
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        let (mut records, mut end) = (0, bytes.len());
        for piece in pieces {
            match piece {
                SegmentPart::Record(FoundRecord::Message(row)) => self.add_message(*row).await?,
                SegmentPart::Record(FoundRecord::Entries(entries)) => self.add_entries(entries).await?,
                SegmentPart::Record(FoundRecord::End(entries, row)) => self.add_end(entries, *row).await?,
                SegmentPart::Record(FoundRecord::Other) => {}
                SegmentPart::Damage(damage) => {
                    ranges.push((damage.offset as u64, damage.bytes as u64));
                    records += u64::from(damage.records);
                    self.compare_damage(damage).await?;
                }
                SegmentPart::Torn { offset, bytes, end: record_end, subject } => {
                    let was_whole = extents.filter(|extents| extents.length > offset as u64);
                    end = match (was_whole, record_end) {
                        // The database has the record's data.
                        (Some(_), Some(record_end)) if self.has_subject(subject.as_ref()).await? => {
                            record_end
                        }
                        (Some(_), _) => offset,
                        (None, _) => usize::MAX,
                    };
                    if was_whole.is_none() {
                        // The process was killed while writing it, or a power cut lost the rest: nobody had
                        // seen it.
                        tracing::warn!(
                            file = %file.display(), offset, bytes,
                            "the journal ends in a record that was cut off while it was written; ignoring it"
                        );
                    }
                    if let Some(RecordSubject::Entries { message, last, .. }) = subject {
                        let extents = *self.message_end(&message).await?;
                        match was_whole.is_some_and(|extent| !extent.has_rebooted()) && extents.last < last {
                            true => self.report_loss(message, extents, last),
                            false => self.note_written(message, last),
                        }
                    }
                }
            }
        }
        if !ranges.is_empty() {
            self.report.damaged.push(DamagedFile { file: file.clone(), ranges, records });
        }
        if let Some(extents) = extents.filter(|extents| extents.length > end as u64) {
            self.report_short(extents, file.clone(), Some(bytes.len() as u64));
        }
        Ok(())
    }

    /// Reports a file that is shorter than the database knows.
    fn report_short(&mut self, extents: &SegmentExtent, file: PathBuf, found_bytes: Option<u64>) {
        let (is_excused, known_bytes) = (extents.has_rebooted(), extents.length);
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
            Some(RecordSubject::Message(id)) => self.message_end(id).await?.exists,
            Some(RecordSubject::Entries { message, last, .. }) => {
                self.message_end(message).await?.last >= *last
            }
            None => false,
        })
    }

    /// Compares an unreadable record with the database.
    async fn compare_damage(&mut self, damage: DamagedRange) -> Result<(), StoreError> {
        self.is_damaged = true;
        match damage.subject {
            Some(RecordSubject::Probe) => {}
            Some(RecordSubject::Message(id)) => {
                if !self.message_end(&id).await?.exists {
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

    /// Records that entries of a message up to `last` were written, even if they are lost.
    fn note_written(&mut self, message: String, last: u64) {
        let last_number = self.report.last_written.entry(message).or_default();
        *last_number = last.max(*last_number);
    }

    /// Reports that entries of a message after the last known one are lost, at least up to `last`.
    fn report_loss(&mut self, message: String, extents: MessageEnd, last: u64) {
        self.note_written(message.clone(), last);
        if extents.exists {
            self.report.loss.truncated_messages.insert(message, extents.last);
        } else {
            self.report.loss.lost_messages.insert(message);
        }
    }

    async fn message_end(&mut self, message: &str) -> Result<&mut MessageEnd, StoreError> {
        if !self.message_ends.contains_key(message) {
            let query = sqlx::query_as(
                "select coalesce((select max(last) from entries where message_id = ?1), 0), \
                 exists (select 1 from messages where id = ?1)",
            );
            let (last, exists): (i64, bool) = query.bind(message).fetch_one(self.pool).await?;
            self.message_ends.insert(message.to_owned(), MessageEnd { last: last.cast_unsigned(), exists });
        }
        Ok(self.message_ends.get_mut(message).expect("it has been put there"))
    }

    async fn add_message(&mut self, mut row: MessageRow) -> Result<(), StoreError> {
        self.message_end(&row.id).await?.exists = true;
        self.message_count += 1;
        // The server that ran it is dead, since only one holds the journal. The database may be another
        // server's.
        (row.server, row.epoch) = (None, None);
        self.bytes += row.request.len();
        self.messages.push(row);
        if self.bytes >= TRANSACTION_BYTES { self.flush().await } else { Ok(()) }
    }

    /// Adds the end of a message. It is ignored if entries before it are missing: the message then gets
    /// another end.
    async fn add_end(&mut self, entries: EntryRange, row: MessageRow) -> Result<(), StoreError> {
        let last = entries.last;
        if !entries.body.is_empty() {
            self.add_entries(entries).await?;
        }
        let MessageEnd { last: stored_last, exists } = *self.message_end(&row.id).await?;
        if exists && stored_last >= last {
            self.ends.push(row);
        }
        Ok(())
    }

    async fn add_entries(&mut self, entries: EntryRange) -> Result<(), StoreError> {
        let message_end = self.message_end(&entries.message).await?;
        let before = *message_end;
        if entries.last <= before.last {
            return Ok(());
        }
        if !before.exists {
            // Its row is lost with a part of the journal, or it was deleted.
            if self.is_new || self.is_damaged {
                self.report.loss.lost_messages.insert(entries.message);
            } else {
                let message_id = entries.message;
                tracing::warn!(message_id, "ignoring entries of a message that does not exist");
            }
            return Ok(());
        }
        if entries.first > before.last + 1 {
            // Entries before them are missing, and numbers have no gaps.
            self.report_loss(entries.message, before, entries.last);
            return Ok(());
        }
        if let Some(message_end) = self.message_ends.get_mut(&entries.message) {
            message_end.last = entries.last;
        }
        if entries.first <= before.last {
            self.add_overlap(entries, before.last);
        } else {
            self.bytes += entries.body.len();
            match self.rows.iter_mut().rev().find(|before| before.message == entries.message) {
                Some(before) if before.last + 1 == entries.first && before.body.len() < TRANSACTION_BYTES => {
                    before.last = entries.last;
                    before.body.extend_from_slice(&entries.body);
                }
                _ => self.rows.push(entries),
            }
        }
        if self.bytes >= TRANSACTION_BYTES { self.flush().await } else { Ok(()) }
    }

    /// Adds the part of overlapping entries after `last`.
    fn add_overlap(&mut self, entries: EntryRange, last: u64) {
        let EntryRange { message, first, last: range_last, body } = entries;
        let stored_count = usize::try_from(last + 1 - first).unwrap_or(usize::MAX);
        let at = memchr::memchr_iter(b'\n', &body).nth(stored_count - 1).map_or(body.len(), |end| end + 1);
        self.bytes += body.len() - at;
        self.rows.push(EntryRange { message, first: last + 1, last: range_last, body: body[at..].to_vec() });
    }

    async fn flush(&mut self) -> Result<(), StoreError> {
        if self.rows.is_empty() && self.messages.is_empty() && self.ends.is_empty() {
            return Ok(());
        }
        let mut connection = OpenTransaction::begin(self.pool).await?;
        let written = async {
            for row in &self.messages {
                insert_message(&mut connection, row).await?;
            }
            insert_rows(&mut connection, &self.rows).await?;
            for row in &self.ends {
                insert_record(&mut connection, row).await?;
            }
            Ok(())
        };
        let written = written.await;
        connection.end(written).await?;
        self.messages.clear();
        self.rows.clear();
        self.ends.clear();
        self.bytes = 0;
        Ok(())
    }

    /// Writes the remaining rows and completes the report.
    async fn complete_report(&mut self) -> Result<(), StoreError> {
        self.flush().await?;
        let JournalReport { damaged, loss, .. } = &mut self.report;
        if !loss.short.is_empty() {
            // Ended messages are fully in the database; unfinished ones may have lost entries.
            loss.unfinished_messages = unfinished_messages(self.pool)
                .await?
                .into_iter()
                .filter(|id| !loss.truncated_messages.contains_key(id))
                .collect();
        }
        if !loss.is_empty() {
            loss.damaged.clone_from(damaged);
        }
        if self.is_new && self.message_count > 0 {
            let messages = self.message_count;
            tracing::warn!(
                messages,
                "the database is new and the journal is not: messages come from the journal, and what only the database had is lost"
            );
        }
        Ok(())
    }

    /// Imports the journal of early versions: a table, with a record for each row of a log and no checksums.
    async fn import_table(&mut self) -> Result<(), StoreError> {
        let bodies: Vec<(Vec<u8>,)> =
            sqlx::query_as("select body from journal order by id").fetch_all(self.pool).await?;
        for (body,) in &bodies {
            let mut rest = body.as_slice();
            while let Some(entries) = parse_table_record(&mut rest) {
                self.add_entries(entries).await?;
            }
        }
        self.flush().await?;
        sqlx::query("delete from journal").execute(self.pool).await?;
        Ok(())
    }
}

/// Lists messages in the database without an end.
async fn unfinished_messages(pool: &SqlitePool) -> Result<Vec<String>, StoreError> {
    let query = sqlx::query_as(
        "select id, (select body from entries where message_id = id order by first desc limit 1) \
         from messages where status = 'running' order by number",
    );
    let rows: Vec<(String, Option<Vec<u8>>)> = query.fetch_all(pool).await?;
    let has_end = |body: &[u8]| {
        let body = body.strip_suffix(b"\n").unwrap_or(body);
        let line = memchr::memrchr(b'\n', body).map_or(body, |at| &body[at + 1..]);
        line.starts_with(b"E completed ") || line.starts_with(b"E error ")
    };
    let unfinished =
        |(id, body): (String, Option<Vec<u8>>)| (!body.is_some_and(|body| has_end(&body))).then_some(id);
    Ok(rows.into_iter().filter_map(unfinished).collect())
}

/// Parses the first record of a table row.
fn parse_table_record(rest: &mut &[u8]) -> Option<EntryRange> {
    fn take_bytes<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
        let length = u32::from_le_bytes(*rest.split_off(..4)?.first_chunk()?);
        rest.split_off(..usize::try_from(length).ok()?)
    }
    let message = String::from_utf8(take_bytes(rest)?.to_vec()).ok()?;
    let first = u64::from_le_bytes(*rest.split_off(..8)?.first_chunk()?);
    let last = u64::from_le_bytes(*rest.split_off(..8)?.first_chunk()?);
    Some(EntryRange { message, first, last, body: take_bytes(rest)?.to_vec() })
}
