//! Reads `card.json` from a CHARX archive, a zip file that may follow a picture. Nothing else is unpacked.

use std::collections::HashSet;

use memchr::memmem;
use miniz_oxide::inflate::decompress_to_vec_with_limit;
use rawzip::{CompressionMethod, ZipArchive, ZipArchiveEntryWayfinder, ZipSliceArchive, ZipVerification};

use tambour::error::Result;

use super::ImportFile;

/// File in the archive that holds the card.
const CARD_NAME: &[u8] = b"card.json";

/// Signature of the end record, which follows the directory of a zip file.
const END_SIGNATURE: &[u8] = b"PK\x05\x06";

/// Maximum length of the end record in bytes: 22 bytes and a comment.
const MAX_END_BYTES: usize = 22 + 65_536;

/// Returns true if `bytes` are a zip file, or a JPEG followed by one.
pub(super) fn is_charx(bytes: &[u8]) -> bool {
    let has_trailing_archive =
        || memmem::rfind(&bytes[bytes.len().saturating_sub(MAX_END_BYTES)..], END_SIGNATURE).is_some();
    // A zip file begins with the header of a file; an empty one, with the end record. JPEG begins with
    // 0xffd8ff.
    bytes.starts_with(b"PK\x03\x04")
        || bytes.starts_with(END_SIGNATURE)
        || bytes.starts_with(&[0xff, 0xd8, 0xff]) && has_trailing_archive()
}

/// Returns the JSON of the card. Refuses an archive with unsafe paths, duplicate names or too much content,
/// even if the card itself is fine.
pub(super) fn extract_card(file: &ImportFile<'_>, bytes: &[u8]) -> Result<Vec<u8>> {
    let archive_error = |error: rawzip::Error| file.refuse(&format!("the archive is broken: {error}"));
    let archive = ZipArchive::from_slice(bytes).map_err(archive_error)?;
    let mut names = HashSet::new();
    let (mut card_entry, mut unpacked_bytes, mut other_count) = (None, 0_u64, 0_usize);
    let mut entries = archive.entries();
    while let Some(entry) = entries.next_entry().map_err(archive_error)? {
        let name = entry.file_path().as_bytes().to_vec();
        let name_text = String::from_utf8_lossy(&name).into_owned();
        if is_outside_path(&name) {
            return Err(file.refuse(&format!("a path in the archive leads outside: `{name_text}`")));
        }
        if !name.is_ascii() {
            file.warn(format!("the archive has a file with a name that is not ASCII: `{name_text}`"));
        }
        unpacked_bytes = unpacked_bytes.saturating_add(entry.uncompressed_size_hint());
        if unpacked_bytes > file.limits.unpacked {
            return Err(
                file.refuse(&format!("the archive unpacks to more than {} bytes", file.limits.unpacked))
            );
        }
        if name == CARD_NAME {
            card_entry =
                Some((entry.wayfinder(), entry.compression_method(), entry.uncompressed_size_hint()));
        } else {
            other_count += usize::from(!entry.is_dir());
        }
        if !names.insert(name) {
            return Err(file.refuse(&format!("the archive has two files `{name_text}`")));
        }
        if names.len() > file.limits.files {
            return Err(file.refuse(&format!("the archive has more than {} files", file.limits.files)));
        }
    }
    let Some(card_entry) = card_entry else {
        return Err(file.refuse("the archive has no `card.json`"));
    };
    if other_count > 0 {
        file.warn(format!("{other_count} other files of the archive are not read"));
    }
    unpack_card(file, &archive, card_entry)
}

/// Unpacks `card.json` and checks its size and checksum.
fn unpack_card(
    file: &ImportFile<'_>,
    archive: &ZipSliceArchive<&[u8]>,
    (wayfinder, method, size): (ZipArchiveEntryWayfinder, CompressionMethod, u64),
) -> Result<Vec<u8>> {
    let limit = file.limits.text;
    // The declared size bounds how much is unpacked.
    let Some(expected_size) = usize::try_from(size).ok().filter(|size| *size <= limit) else {
        return Err(file.refuse(&format!("`card.json` has {size} bytes, at most {limit} are read")));
    };
    let entry = archive
        .get_entry(wayfinder)
        .map_err(|error| file.refuse(&format!("`card.json` cannot be read: {error}")))?;
    let json_bytes = match method {
        CompressionMethod::STORE => entry.data().to_vec(),
        CompressionMethod::DEFLATE => decompress_to_vec_with_limit(entry.data(), expected_size)
            .map_err(|error| file.refuse(&format!("`card.json` cannot be unpacked: {error}")))?,
        other => {
            return Err(file.refuse(&format!("`card.json` has an unsupported compression method: {other:?}")));
        }
    };
    let actual =
        ZipVerification { crc: crc32fast::hash(&json_bytes), uncompressed_size: json_bytes.len() as u64 };
    entry
        .claim_verifier()
        .valid(actual)
        .map_err(|error| file.refuse(&format!("`card.json` is damaged: {error}")))?;
    Ok(json_bytes)
}

/// Returns true if a path leads out of the archive: it has a part `..`, a backslash or a NUL, is
/// absolute, or begins with a drive letter.
fn is_outside_path(name: &[u8]) -> bool {
    name.first() == Some(&b'/')
        || name.iter().any(|byte| matches!(byte, b'\\' | 0))
        || name.get(1) == Some(&b':')
        || name.split(|byte| *byte == b'/').any(|part| part == b"..")
}
