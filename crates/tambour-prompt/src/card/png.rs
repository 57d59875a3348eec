//! Reads the card from a picture: a `tEXt` chunk of PNG or APNG with base64 of its JSON. Image data is not
//! decoded.

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
    let (mut v2_value, mut v3_value, mut assets) = (None, None, 0);
    let mut rest = &bytes[SIGNATURE.len()..];
    let mut has_end = false;
    for number in 0.. {
        if rest.is_empty() || has_end {
            break;
        }
        if number == file.limits.chunks {
            return Err(file.refuse(&format!("the picture has more than {number} chunks")));
        }
        let chunk = PngChunk::read_first(rest)
            .ok_or_else(|| file.refuse(&format!("the picture is cut off in its chunk {}", number + 1)))?;
        rest = &rest[12 + chunk.data.len()..];
        has_end = chunk.kind == b"IEND";
        if chunk.kind != b"tEXt" {
            continue;
        }
        let end = chunk.data.iter().position(|byte| *byte == 0).unwrap_or(chunk.data.len());
        let (keyword, value) = (&chunk.data[..end], chunk.data.get(end + 1..).unwrap_or_default());
        let place = if keyword.eq_ignore_ascii_case(b"ccv3") {
            &mut v3_value
        } else if keyword.eq_ignore_ascii_case(b"chara") {
            &mut v2_value
        } else {
            assets += usize::from(keyword.starts_with(b"chara-ext-asset_"));
            continue;
        };
        if !chunk.is_intact() {
            file.warn("the checksum of the chunk with the card is wrong");
        }
        // The first chunk of a kind counts.
        place.get_or_insert(value);
    }
    if !has_end {
        file.warn("the picture has no end");
    }
    if assets > 0 {
        let verb = if assets == 1 { "is" } else { "are" };
        let assets = format_count(assets, "file");
        file.warn(format!("{assets} in chunks of the picture {verb} not read"));
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
        let number =
            |at: usize| Some(u32::from_be_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?));
        let length = usize::try_from(number(0)?).ok()?;
        let end = length.checked_add(8)?;
        Some(PngChunk { kind: bytes.get(4..8)?, data: bytes.get(8..end)?, checksum: number(end)? })
    }

    fn is_intact(&self) -> bool {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(self.kind);
        hasher.update(self.data);
        hasher.finalize() == self.checksum
    }
}

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
