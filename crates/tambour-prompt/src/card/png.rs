//! Reads the card from a picture: a `tEXt` chunk of PNG or APNG that holds its JSON in base64. Image data
//! is not decoded.

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use tambour::error::Result;
use tambour::texts::format_count;

use super::ImportFile;

/// Signature at the beginning of a PNG file.
pub(super) const SIGNATURE: &[u8] = b"\x89PNG\r\n\x1a\n";

/// Lenient base64 decoder: padding is optional.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// Returns the JSON of the card; a `ccv3` chunk takes precedence over `chara`.
pub(super) fn extract_card(file: &ImportFile<'_>, bytes: &[u8]) -> Result<Vec<u8>> {
    let (mut v2_value, mut v3_value, mut asset_count) = (None, None, 0);
    let mut remaining = &bytes[SIGNATURE.len()..];
    let mut has_end = false;
    for chunk_index in 0.. {
        if remaining.is_empty() || has_end {
            break;
        }
        if chunk_index == file.limits.chunks {
            return Err(file.refuse(&format!("the picture has more than {chunk_index} chunks")));
        }
        let chunk = PngChunk::read_first(remaining).ok_or_else(|| {
            file.refuse(&format!("the picture is cut off in its chunk {}", chunk_index + 1))
        })?;
        // Length, kind and checksum of a chunk take four bytes each.
        remaining = &remaining[12 + chunk.data.len()..];
        has_end = chunk.kind == b"IEND";
        if chunk.kind != b"tEXt" {
            continue;
        }
        // A zero byte separates the keyword from the value.
        let keyword_end = chunk.data.iter().position(|byte| *byte == 0).unwrap_or(chunk.data.len());
        let keyword = &chunk.data[..keyword_end];
        let value = chunk.data.get(keyword_end + 1..).unwrap_or_default();
        let target = if keyword.eq_ignore_ascii_case(b"ccv3") {
            &mut v3_value
        } else if keyword.eq_ignore_ascii_case(b"chara") {
            &mut v2_value
        } else {
            // The chunk holds a file that the card refers to.
            asset_count += usize::from(keyword.starts_with(b"chara-ext-asset_"));
            continue;
        };
        if !chunk.is_intact() {
            file.warn("the checksum of the chunk with the card is wrong");
        }
        // The first chunk with a keyword counts.
        target.get_or_insert(value);
    }
    if !has_end {
        file.warn("the picture has no end");
    }
    if asset_count > 0 {
        let verb = if asset_count == 1 { "is" } else { "are" };
        let asset_files = format_count(asset_count, "file");
        file.warn(format!("{asset_files} in chunks of the picture {verb} not read"));
    }
    let Some((keyword, value)) =
        v3_value.map(|value| ("ccv3", value)).or(v2_value.map(|value| ("chara", value)))
    else {
        return Err(file.refuse("a picture without a card: no `tEXt` chunk `ccv3` or `chara`"));
    };
    decode_card(file, keyword, value)
}

/// One PNG chunk.
struct PngChunk<'a> {
    kind: &'a [u8],
    data: &'a [u8],
    checksum: u32,
}

impl<'a> PngChunk<'a> {
    /// Reads the chunk at the beginning of `bytes`; `None` if it is incomplete.
    fn read_first(bytes: &'a [u8]) -> Option<PngChunk<'a>> {
        let read_u32 =
            |at: usize| Some(u32::from_be_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?));
        let data_len = usize::try_from(read_u32(0)?).ok()?;
        let data_end = data_len.checked_add(8)?;
        Some(PngChunk {
            kind: bytes.get(4..8)?,
            data: bytes.get(8..data_end)?,
            checksum: read_u32(data_end)?,
        })
    }

    /// Returns true if the checksum of kind and data is right.
    fn is_intact(&self) -> bool {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(self.kind);
        hasher.update(self.data);
        hasher.finalize() == self.checksum
    }
}

/// Decodes the value of the chunk with the card; JSON without base64 is accepted with a warning.
fn decode_card(file: &ImportFile<'_>, keyword: &str, value: &[u8]) -> Result<Vec<u8>> {
    // Four base64 characters encode three bytes.
    if value.len() / 4 * 3 > file.limits.text {
        let limit = file.limits.text;
        return Err(file.refuse(&format!(
            "the chunk `{keyword}` has {} bytes, too many for {limit} of JSON",
            value.len()
        )));
    }
    if value.trim_ascii_start().starts_with(b"{") {
        file.warn(format!("the chunk `{keyword}` is plain JSON, not base64 of JSON"));
        return Ok(value.to_vec());
    }
    let value: Vec<u8> = value.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect();
    BASE64
        .decode(&value)
        .map_err(|error| file.refuse(&format!("the chunk `{keyword}` is not base64 of JSON: {error}")))
}
