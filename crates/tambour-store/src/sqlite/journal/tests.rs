//! Journals damaged at every byte and truncated at every length.

use super::record::{FoundRecord, JournalRecord, LogEnd, RECORD_MARK, RecordSubject};
use super::scan::{DamagedRange, SegmentPart, SegmentScan, scan_segment};
use super::{SEGMENT_HEADER, v1};
use crate::{Batch, MessageRow};

const MESSAGES: usize = 200;

/// Range and subject of a record in the test journal.
struct TestRecord {
    start: usize,
    end: usize,
    subject: RecordSubject,
}

fn row(n: usize) -> MessageRow {
    MessageRow {
        id: format!("msg_{n:03}"),
        conversation_id: "conv".into(),
        status: "running".into(),
        request: format!("{{\"text\":\"question {n} é\"}}"),
        ..MessageRow::default()
    }
}

fn entries(n: usize, first: u64, ends: bool) -> Batch {
    let mut batch = Batch::new(first);
    batch.push_raw(first, &format!("text {n} of entry {first}"));
    if ends {
        batch.push_event("completed", |out| out.extend_from_slice(b"{\"finish_reason\":\"stop\"}"));
    }
    batch
}

/// Builds a segment of messages, each with a row and two records of entries, and a probe at its end.
fn journal() -> (Vec<u8>, Vec<TestRecord>) {
    let (mut bytes, mut written) = (SEGMENT_HEADER.to_vec(), Vec::new());
    let mut add = |record: JournalRecord<'_>, subject| {
        let start = bytes.len();
        record.write(u32::try_from(written.len() + 1).unwrap(), &mut bytes);
        written.push(TestRecord { start, end: bytes.len(), subject });
    };
    for n in 0..MESSAGES {
        add(JournalRecord::Message(&row(n)), RecordSubject::Message(row(n).id));
        for (first, ends) in [(1, false), (2, true)] {
            let (message, batch) = (row(n).id, entries(n, first, ends));
            let (first, last) = (batch.first(), batch.last());
            let ended_row = MessageRow { status: "completed".into(), ..row(n) };
            let record = match ends {
                true => JournalRecord::End(LogEnd::new(&ended_row, &batch)),
                false => JournalRecord::Entries { message: &message, first, last, body: batch.body() },
            };
            add(record, RecordSubject::Entries { message: message.clone(), first, last });
        }
    }
    add(JournalRecord::Probe, RecordSubject::Probe);
    (bytes, written)
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

/// Separates intact records from damage.
fn split_damage(
    pieces: impl IntoIterator<Item = SegmentPart>,
) -> (Vec<RecordSubject>, Vec<DamagedRange>, usize) {
    let (mut records, mut damages, mut torn_bytes) = (Vec::new(), Vec::new(), 0);
    for piece in pieces {
        match piece {
            SegmentPart::Record(found) => records.push(subject(&found)),
            SegmentPart::Damage(place) => damages.push(place),
            SegmentPart::Torn { .. } => torn_bytes += 1,
        }
    }
    (records, damages, torn_bytes)
}

#[test]
fn an_intact_journal_is_read_as_it_was_written() {
    let (bytes, written) = journal();
    let (records, damages, torn_bytes) = split_damage(scan_segment(&bytes).unwrap());
    assert!(records.iter().eq(written.iter().map(|record| &record.subject)));
    assert_eq!((damages.len(), torn_bytes), (0, 0));
}

#[test]
fn a_byte_that_is_changed_anywhere_costs_its_own_record_and_is_told() {
    let (mut bytes, written) = journal();
    for flip in [0x01, 0x80, 0xff] {
        for (n, record) in written.iter().enumerate() {
            for at in record.start..record.end {
                bytes[at] ^= flip;
                // A scan has no memory besides offset and number: from the next record that it finds in
                // place, it reads the rest like an intact journal.
                let end = written.get(n + 2).map_or(bytes.len(), |record| record.end);
                let scan =
                    SegmentScan::from_record(&bytes[..end], record.start, u32::try_from(n + 1).unwrap());
                let (records, damages, torn_bytes) = split_damage(scan);
                let later_subjects = written.iter().skip(n + 1).take(2).map(|record| &record.subject);
                assert!(records.iter().eq(later_subjects), "{at}: {records:?}");
                if torn_bytes == 1 {
                    // For the last record alone, damage cannot be distinguished from an interrupted write.
                    assert!(n + 1 == written.len() && damages.is_empty(), "{at}");
                } else {
                    let [place] = damages.as_slice() else { panic!("{at}: {damages:?}") };
                    assert_eq!((place.offset, place.records), (record.start, 1), "{at}");
                    assert_eq!(place.bytes, record.end - record.start, "{at}");
                    let is_known = place.subject.as_ref().is_none_or(|subject| *subject == record.subject);
                    assert!(is_known, "{at}: {place:?}");
                }
                bytes[at] ^= flip;
            }
        }
    }
    // The whole journal, damaged in the header and at intervals.
    for at in (0..SEGMENT_HEADER.len()).chain((SEGMENT_HEADER.len()..bytes.len()).step_by(1999)) {
        bytes[at] ^= 0x10;
        let (records, damages, torn_bytes) = split_damage(scan_segment(&bytes).unwrap());
        let lost_records = written.iter().filter(|record| (record.start..record.end).contains(&at)).count();
        assert_eq!(records.len() + lost_records, written.len(), "{at}");
        assert_eq!((damages.len(), torn_bytes), (1, 0), "{at}");
        bytes[at] ^= 0x10;
    }
}

#[test]
fn a_damaged_body_says_whose_it_was() {
    let (mut bytes, written) = journal();
    for record in &written[..6] {
        bytes[record.end - 3] ^= 0x20;
    }
    let (records, damages, _) = split_damage(scan_segment(&bytes).unwrap());
    assert_eq!(records.len(), written.len() - 6);
    let subjects: Vec<&RecordSubject> = damages.iter().map(|place| place.subject.as_ref().unwrap()).collect();
    assert!(subjects.into_iter().eq(written[..6].iter().map(|record| &record.subject)));
}

#[test]
fn records_that_are_cut_out_or_overwritten_are_counted() {
    let (bytes, written) = journal();
    // Three records are removed without a trace.
    let (from, to) = (written[10].start, written[12].end);
    let shortened = [&bytes[..from], &bytes[to..]].concat();
    let (records, damages, _) = split_damage(scan_segment(&shortened).unwrap());
    assert_eq!(records.len() + 3, written.len());
    assert_eq!(damages, [DamagedRange { offset: from, bytes: 0, records: 3, subject: None }]);
    // Zeros from the middle of one record to the middle of another.
    let mut zeros = bytes;
    let (from, to) = (written[10].start + 50, written[12].start + 20);
    zeros[from..to].fill(0);
    let (records, damages, _) = split_damage(scan_segment(&zeros).unwrap());
    assert_eq!(records.len() + 3, written.len());
    assert_eq!(damages.iter().map(|place| place.records).sum::<u32>(), 3, "{damages:?}");
}

#[test]
fn a_journal_that_is_cut_off_has_all_before_the_cut_and_says_so() {
    let (bytes, written) = journal();
    for (n, record) in written.iter().enumerate() {
        let number = u32::try_from(n + 1).unwrap();
        for cut in record.start + 1..record.end {
            let (records, damages, torn_bytes) =
                split_damage(SegmentScan::from_record(&bytes[..cut], record.start, number));
            assert_eq!((records.len(), damages.len(), torn_bytes), (0, 0, 1), "{cut}");
        }
        let (records, damages, torn_bytes) =
            split_damage(SegmentScan::from_record(&bytes[..record.end], record.start, number));
        assert_eq!((records.len(), damages.len(), torn_bytes), (1, 0, 0));
    }
    for cut in (0..=SEGMENT_HEADER.len()).chain((SEGMENT_HEADER.len()..bytes.len()).step_by(1999)) {
        let (records, damages, torn_bytes) = split_damage(scan_segment(&bytes[..cut]).unwrap());
        let complete_count = written.iter().filter(|record| record.end <= cut).count();
        assert_eq!((records.len(), damages.len()), (complete_count, 0), "{cut}");
        let is_inside = written.iter().any(|record| record.start < cut && cut < record.end);
        assert_eq!(torn_bytes, usize::from(is_inside), "{cut}");
    }
    // Allocated space that was never written.
    let zero_filled = [&bytes[..written[9].start + 60], &[0; 4096]].concat();
    let (records, damages, torn_bytes) = split_damage(scan_segment(&zero_filled).unwrap());
    assert_eq!((records.len(), damages.len(), torn_bytes), (9, 0, 1));
    let zero_filled = [&bytes[..written[9].start], &[0; 4096]].concat();
    let (records, damages, torn_bytes) = split_damage(scan_segment(&zero_filled).unwrap());
    assert_eq!((records.len(), damages.len(), torn_bytes), (9, 0, 1));
}

#[test]
fn nobodys_words_are_taken_for_a_record() {
    let (bytes, written) = journal();
    // A record within the text of another one: as JSON encodes it, and byte for byte as only a damaged store
    // would hold it.
    let forged_record = &bytes[written[0].start..written[0].end];
    assert!(RECORD_MARK.iter().all(|byte| *byte >= 0xf5), "no byte of UTF-8");
    let forged_text = String::from_utf8_lossy(forged_record).into_owned();
    let mut batch = Batch::new(1);
    batch.push_raw(1, &forged_text);
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
fn write_v1(kind: u8, payload: &[u8], out: &mut Vec<u8>) {
    let payload = [&[kind], payload].concat();
    out.extend_from_slice(&u32::try_from(payload.len()).unwrap().to_le_bytes());
    out.extend_from_slice(&crc32fast::hash(&payload).to_le_bytes());
    out.extend_from_slice(&payload);
}

/// Builds a segment of version 1.
fn v1_journal() -> (Vec<u8>, Vec<TestRecord>) {
    let (mut bytes, mut written) = (v1::V1_HEADER.to_vec(), Vec::new());
    let mut add = |kind, payload: &[u8], subject| {
        let start = bytes.len();
        write_v1(kind, payload, &mut bytes);
        written.push(TestRecord { start, end: bytes.len(), subject });
    };
    for n in 0..20 {
        let row = row(n);
        add(b'M', &serde_json::to_vec(&row).unwrap(), RecordSubject::Message(row.id.clone()));
        let batch = entries(n, 1, true);
        let mut payload = u32::try_from(row.id.len()).unwrap().to_le_bytes().to_vec();
        payload.extend_from_slice(row.id.as_bytes());
        payload.extend_from_slice(&batch.first().to_le_bytes());
        payload.extend_from_slice(&batch.last().to_le_bytes());
        payload.extend_from_slice(batch.body());
        let (first, last) = (batch.first(), batch.last());
        add(b'E', &payload, RecordSubject::Entries { message: row.id, first, last });
    }
    add(b'P', &[], RecordSubject::Probe);
    (bytes, written)
}

#[test]
fn journals_of_the_first_version_are_read_past_damage_too() {
    let (mut bytes, written) = v1_journal();
    let remaining_subjects = |lost_index: Option<usize>| {
        let intact_records = written.iter().enumerate().filter(move |(n, _)| Some(*n) != lost_index);
        intact_records.map(|(_, record)| &record.subject).collect::<Vec<_>>()
    };
    let (records, damages, torn_bytes) = split_damage(scan_segment(&bytes).unwrap());
    assert!(records.iter().eq(remaining_subjects(None)) && damages.is_empty() && torn_bytes == 0);
    for at in 0..bytes.len() {
        for flip in [0x01, 0xff] {
            bytes[at] ^= flip;
            let lost_index = written.iter().position(|record| (record.start..record.end).contains(&at));
            let (records, damages, torn_bytes) = split_damage(scan_segment(&bytes).unwrap());
            assert!(records.iter().eq(remaining_subjects(lost_index)), "{at}: {lost_index:?} {records:?}");
            assert_eq!(damages.len() + torn_bytes, 1, "{at}");
            assert!(torn_bytes == 0 || lost_index == Some(written.len() - 1), "{at}");
            bytes[at] ^= flip;
        }
    }
    for cut in 0..bytes.len() {
        let (records, damages, torn_bytes) = split_damage(scan_segment(&bytes[..cut]).unwrap());
        let complete_count = written.iter().filter(|record| record.end <= cut).count();
        assert_eq!((records.len(), damages.len()), (complete_count, 0), "{cut}");
        let is_inside = written.iter().any(|record| record.start < cut && cut < record.end);
        assert_eq!(torn_bytes, usize::from(is_inside), "{cut}");
    }
}

#[test]
fn a_journal_of_a_later_version_is_not_touched() {
    let later_journal = [&SEGMENT_HEADER[..8], &[9, 0, 0, 0], b"something else"].concat();
    assert!(scan_segment(&later_journal).is_err());
    // A file that is no journal at all counts as damage.
    let (records, damages, _) = split_damage(scan_segment(b"no journal at all").unwrap());
    assert_eq!((records.len(), damages.len()), (0, 1));
}

#[test]
fn garbage_ends_in_time_and_gives_nothing() {
    let mut state = 7u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_le_bytes()[3]
    };
    let mut bytes = SEGMENT_HEADER.to_vec();
    // Marks without records, as dense as possible, then noise.
    (0..10_000).for_each(|_| bytes.extend_from_slice(&RECORD_MARK));
    bytes.extend(std::iter::repeat_with(&mut next).take(100_000));
    let (records, damages, torn_bytes) = split_damage(scan_segment(&bytes).unwrap());
    assert_eq!((records.len(), damages.len() + torn_bytes), (0, 1));
}
