//! Tests of the scan of journals that are damaged at every byte, truncated at every length, or of another
//! version.

use super::record::{FoundRecord, JournalRecord, LogEnd, RECORD_MARK, RecordSubject};
use super::scan::{DamagedRange, SegmentPart, SegmentScan, scan_segment};
use super::{SEGMENT_HEADER, v1};
use crate::{Batch, MessageRow};

/// Number of messages in the test journal.
const MESSAGES: usize = 200;

/// Byte range and subject of a record in the test journal.
struct TestRecord {
    start: usize,
    end: usize,
    subject: RecordSubject,
}

/// Returns the row of message `n`.
fn row(n: usize) -> MessageRow {
    MessageRow {
        id: format!("msg_{n:03}"),
        conversation_id: "conv".into(),
        status: "running".into(),
        request: format!("{{\"text\":\"question {n} é\"}}"),
        ..MessageRow::default()
    }
}

/// Returns a raw entry of message `n` and, with `has_end`, the end of the message after it.
fn entries(n: usize, first: u64, has_end: bool) -> Batch {
    let mut batch = Batch::new(first);
    batch.push_raw(first, &format!("text {n} of entry {first}"));
    if has_end {
        batch.push_event("completed", |out| out.extend_from_slice(b"{\"finish_reason\":\"stop\"}"));
    }
    batch
}

/// Builds a segment of messages, each with a row and two records of entries, and a probe at its end.
fn journal() -> (Vec<u8>, Vec<TestRecord>) {
    let (mut bytes, mut written_records) = (SEGMENT_HEADER.to_vec(), Vec::new());
    let mut add = |record: JournalRecord<'_>, subject| {
        let start = bytes.len();
        record.write(u32::try_from(written_records.len() + 1).unwrap(), &mut bytes);
        written_records.push(TestRecord { start, end: bytes.len(), subject });
    };
    for n in 0..MESSAGES {
        add(JournalRecord::Message(&row(n)), RecordSubject::Message(row(n).id));
        for (first, has_end) in [(1, false), (2, true)] {
            let (message, batch) = (row(n).id, entries(n, first, has_end));
            let (first, last) = (batch.first(), batch.last());
            let ended_row = MessageRow { status: "completed".into(), ..row(n) };
            let record = match has_end {
                true => JournalRecord::End(LogEnd::new(&ended_row, &batch)),
                false => JournalRecord::Entries { message: &message, first, last, body: batch.body() },
            };
            add(record, RecordSubject::Entries { message: message.clone(), first, last });
        }
    }
    add(JournalRecord::Probe, RecordSubject::Probe);
    (bytes, written_records)
}

fn subject(found: &FoundRecord) -> RecordSubject {
    match found {
        FoundRecord::Message(row) => RecordSubject::Message(row.id.clone()),
        FoundRecord::Entries(entries) | FoundRecord::End(entries, _) => RecordSubject::Entries {
            message: entries.message.clone(),
            first: entries.first,
            last: entries.last,
        },
        FoundRecord::Other => RecordSubject::Probe,
    }
}

/// Returns the subjects of the intact records, the damaged ranges and the number of torn records.
fn split_damage(
    parts: impl IntoIterator<Item = SegmentPart>,
) -> (Vec<RecordSubject>, Vec<DamagedRange>, usize) {
    let (mut records, mut damages, mut torn_count) = (Vec::new(), Vec::new(), 0);
    for part in parts {
        match part {
            SegmentPart::Record(found) => records.push(subject(&found)),
            SegmentPart::Damage(damage) => damages.push(damage),
            SegmentPart::Torn { .. } => torn_count += 1,
        }
    }
    (records, damages, torn_count)
}

#[test]
fn an_intact_journal_is_read_as_it_was_written() {
    let (bytes, written_records) = journal();
    let (records, damages, torn_count) = split_damage(scan_segment(&bytes).unwrap());
    assert!(records.iter().eq(written_records.iter().map(|record| &record.subject)));
    assert_eq!((damages.len(), torn_count), (0, 0));
}

#[test]
fn a_changed_byte_costs_only_its_own_record_and_is_reported() {
    let (mut bytes, written_records) = journal();
    for flip in [0x01, 0x80, 0xff] {
        for (n, record) in written_records.iter().enumerate() {
            for at in record.start..record.end {
                bytes[at] ^= flip;
                // A scan remembers only an offset and a number. If it reads the next two records correctly,
                // it reads all others like an intact journal, and need not read them here.
                let end = written_records.get(n + 2).map_or(bytes.len(), |record| record.end);
                let scan =
                    SegmentScan::from_record(&bytes[..end], record.start, u32::try_from(n + 1).unwrap());
                let (records, damages, torn_count) = split_damage(scan);
                let later_subjects = written_records.iter().skip(n + 1).take(2).map(|record| &record.subject);
                assert!(records.iter().eq(later_subjects), "{at}: {records:?}");
                if torn_count == 1 {
                    // Only damage of the last record looks like an interrupted write.
                    assert!(n + 1 == written_records.len() && damages.is_empty(), "{at}");
                } else {
                    let [damage] = damages.as_slice() else { panic!("{at}: {damages:?}") };
                    assert_eq!((damage.offset, damage.records), (record.start, 1), "{at}");
                    assert_eq!(damage.bytes, record.end - record.start, "{at}");
                    let is_right = damage.subject.as_ref().is_none_or(|subject| *subject == record.subject);
                    assert!(is_right, "{at}: {damage:?}");
                }
                bytes[at] ^= flip;
            }
        }
    }
    // The whole journal, damaged in each byte of its header and in every 1999th byte of its records.
    for at in (0..SEGMENT_HEADER.len()).chain((SEGMENT_HEADER.len()..bytes.len()).step_by(1999)) {
        bytes[at] ^= 0x10;
        let (records, damages, torn_count) = split_damage(scan_segment(&bytes).unwrap());
        let lost_count =
            written_records.iter().filter(|record| (record.start..record.end).contains(&at)).count();
        assert_eq!(records.len() + lost_count, written_records.len(), "{at}");
        assert_eq!((damages.len(), torn_count), (1, 0), "{at}");
        bytes[at] ^= 0x10;
    }
}

#[test]
fn a_record_with_a_damaged_body_still_tells_its_subject() {
    let (mut bytes, written_records) = journal();
    for record in &written_records[..6] {
        bytes[record.end - 3] ^= 0x20;
    }
    let (records, damages, _) = split_damage(scan_segment(&bytes).unwrap());
    assert_eq!(records.len(), written_records.len() - 6);
    let subjects: Vec<&RecordSubject> =
        damages.iter().map(|damage| damage.subject.as_ref().unwrap()).collect();
    assert!(subjects.into_iter().eq(written_records[..6].iter().map(|record| &record.subject)));
}

#[test]
fn records_that_are_cut_out_or_overwritten_are_counted() {
    let (bytes, written_records) = journal();
    // Three records are removed without a trace.
    let (start, end) = (written_records[10].start, written_records[12].end);
    let shortened = [&bytes[..start], &bytes[end..]].concat();
    let (records, damages, _) = split_damage(scan_segment(&shortened).unwrap());
    assert_eq!(records.len() + 3, written_records.len());
    assert_eq!(damages, [DamagedRange { offset: start, bytes: 0, records: 3, subject: None }]);
    // Zeros from the middle of one record to the middle of another.
    let mut overwritten = bytes;
    let (start, end) = (written_records[10].start + 50, written_records[12].start + 20);
    overwritten[start..end].fill(0);
    let (records, damages, _) = split_damage(scan_segment(&overwritten).unwrap());
    assert_eq!(records.len() + 3, written_records.len());
    assert_eq!(damages.iter().map(|damage| damage.records).sum::<u32>(), 3, "{damages:?}");
}

#[test]
fn a_truncated_journal_keeps_all_records_before_the_cut_and_reports_a_torn_one() {
    let (bytes, written_records) = journal();
    for (n, record) in written_records.iter().enumerate() {
        let number = u32::try_from(n + 1).unwrap();
        for cut in record.start + 1..record.end {
            let (records, damages, torn_count) =
                split_damage(SegmentScan::from_record(&bytes[..cut], record.start, number));
            assert_eq!((records.len(), damages.len(), torn_count), (0, 0, 1), "{cut}");
        }
        let (records, damages, torn_count) =
            split_damage(SegmentScan::from_record(&bytes[..record.end], record.start, number));
        assert_eq!((records.len(), damages.len(), torn_count), (1, 0, 0));
    }
    for cut in (0..=SEGMENT_HEADER.len()).chain((SEGMENT_HEADER.len()..bytes.len()).step_by(1999)) {
        let (records, damages, torn_count) = split_damage(scan_segment(&bytes[..cut]).unwrap());
        let complete_count = written_records.iter().filter(|record| record.end <= cut).count();
        assert_eq!((records.len(), damages.len()), (complete_count, 0), "{cut}");
        let is_inside = written_records.iter().any(|record| record.start < cut && cut < record.end);
        assert_eq!(torn_count, usize::from(is_inside), "{cut}");
    }
    // Allocated space that was never written.
    let zero_filled = [&bytes[..written_records[9].start + 60], &[0; 4096]].concat();
    let (records, damages, torn_count) = split_damage(scan_segment(&zero_filled).unwrap());
    assert_eq!((records.len(), damages.len(), torn_count), (9, 0, 1));
    let zero_filled = [&bytes[..written_records[9].start], &[0; 4096]].concat();
    let (records, damages, torn_count) = split_damage(scan_segment(&zero_filled).unwrap());
    assert_eq!((records.len(), damages.len(), torn_count), (9, 0, 1));
}

#[test]
fn no_text_in_an_entry_is_taken_for_a_record() {
    let (bytes, written_records) = journal();
    // A record within the text of another one. A text is UTF-8, so the mark does not survive in it.
    let forged_record = &bytes[written_records[0].start..written_records[0].end];
    assert!(RECORD_MARK.iter().all(|byte| *byte >= 0xf5), "no byte of UTF-8");
    let forged_text = String::from_utf8_lossy(forged_record).into_owned();
    let mut batch = Batch::new(1);
    batch.push_raw(1, &forged_text);
    // Wherever the outer record is damaged, the scan finds only the probe after it.
    let mut out = SEGMENT_HEADER.to_vec();
    let start = out.len();
    JournalRecord::Entries { message: "msg_x", first: 1, last: 1, body: batch.body() }.write(1, &mut out);
    let end = out.len();
    JournalRecord::Probe.write(2, &mut out);
    for at in start..end {
        out[at] ^= 0x40;
        let (records, damages, _) = split_damage(scan_segment(&out).unwrap());
        assert_eq!((records, damages.len()), (vec![RecordSubject::Probe], 1), "{at}");
        out[at] ^= 0x40;
    }
}

/// Encodes a record of version 1.
fn write_v1(kind: u8, content: &[u8], out: &mut Vec<u8>) {
    let payload = [&[kind], content].concat();
    out.extend_from_slice(&u32::try_from(payload.len()).unwrap().to_le_bytes());
    out.extend_from_slice(&crc32fast::hash(&payload).to_le_bytes());
    out.extend_from_slice(&payload);
}

/// Builds a segment of version 1.
fn v1_journal() -> (Vec<u8>, Vec<TestRecord>) {
    let (mut bytes, mut written_records) = (v1::V1_HEADER.to_vec(), Vec::new());
    let mut add = |kind, content: &[u8], subject| {
        let start = bytes.len();
        write_v1(kind, content, &mut bytes);
        written_records.push(TestRecord { start, end: bytes.len(), subject });
    };
    for n in 0..20 {
        let row = row(n);
        add(b'M', &serde_json::to_vec(&row).unwrap(), RecordSubject::Message(row.id.clone()));
        let has_end = true;
        let batch = entries(n, 1, has_end);
        let mut content = u32::try_from(row.id.len()).unwrap().to_le_bytes().to_vec();
        content.extend_from_slice(row.id.as_bytes());
        content.extend_from_slice(&batch.first().to_le_bytes());
        content.extend_from_slice(&batch.last().to_le_bytes());
        content.extend_from_slice(batch.body());
        let (first, last) = (batch.first(), batch.last());
        add(b'E', &content, RecordSubject::Entries { message: row.id, first, last });
    }
    add(b'P', &[], RecordSubject::Probe);
    (bytes, written_records)
}

#[test]
fn journals_of_the_first_version_are_read_past_damage_too() {
    let (mut bytes, written_records) = v1_journal();
    let remaining_subjects = |lost_index: Option<usize>| {
        let intact_records = written_records.iter().enumerate().filter(move |(n, _)| Some(*n) != lost_index);
        intact_records.map(|(_, record)| &record.subject).collect::<Vec<_>>()
    };
    let (records, damages, torn_count) = split_damage(scan_segment(&bytes).unwrap());
    assert!(records.iter().eq(remaining_subjects(None)) && damages.is_empty() && torn_count == 0);
    for at in 0..bytes.len() {
        for flip in [0x01, 0xff] {
            bytes[at] ^= flip;
            let lost_index =
                written_records.iter().position(|record| (record.start..record.end).contains(&at));
            let (records, damages, torn_count) = split_damage(scan_segment(&bytes).unwrap());
            assert!(records.iter().eq(remaining_subjects(lost_index)), "{at}: {lost_index:?} {records:?}");
            assert_eq!(damages.len() + torn_count, 1, "{at}");
            assert!(torn_count == 0 || lost_index == Some(written_records.len() - 1), "{at}");
            bytes[at] ^= flip;
        }
    }
    for cut in 0..bytes.len() {
        let (records, damages, torn_count) = split_damage(scan_segment(&bytes[..cut]).unwrap());
        let complete_count = written_records.iter().filter(|record| record.end <= cut).count();
        assert_eq!((records.len(), damages.len()), (complete_count, 0), "{cut}");
        let is_inside = written_records.iter().any(|record| record.start < cut && cut < record.end);
        assert_eq!(torn_count, usize::from(is_inside), "{cut}");
    }
}

#[test]
fn a_journal_of_a_later_version_is_an_error_and_other_files_are_damage() {
    let later_journal = [&SEGMENT_HEADER[..8], &[9, 0, 0, 0], b"something else"].concat();
    assert!(scan_segment(&later_journal).is_err());
    let (records, damages, _) = split_damage(scan_segment(b"no journal at all").unwrap());
    assert_eq!((records.len(), damages.len()), (0, 1));
}

#[test]
fn a_scan_of_garbage_ends_and_finds_no_record() {
    // A linear congruential generator: the noise is the same in every run.
    let mut state = 7u32;
    let mut next_byte = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_le_bytes()[3]
    };
    let mut bytes = SEGMENT_HEADER.to_vec();
    // Marks without records, without a gap, then noise.
    (0..10_000).for_each(|_| bytes.extend_from_slice(&RECORD_MARK));
    bytes.extend(std::iter::repeat_with(&mut next_byte).take(100_000));
    let (records, damages, torn_count) = split_damage(scan_segment(&bytes).unwrap());
    assert_eq!((records.len(), damages.len() + torn_count), (0, 1));
}
