//! Fast searches for significant bytes, also in text as short as a model's token. [`find`] and its
//! variants find the first of up to three byte values, [`rfind`] the last of one, by a plain loop or memchr.
//! [`SignMasks`] marks all significant bytes of a short text in one pass.

use wide::u8x16;

/// Length in bytes below which calling a vector routine costs more than the loop.
const SHORT_LEN: usize = 12;

/// Offset of the first `needle` in `bytes`.
#[inline]
pub fn find(needle: u8, bytes: &[u8]) -> Option<usize> {
    if bytes.len() < SHORT_LEN {
        return bytes.iter().position(|&byte| byte == needle);
    }
    memchr::memchr(needle, bytes)
}

/// Offset of the first of two bytes.
#[inline]
pub fn find2(first: u8, second: u8, bytes: &[u8]) -> Option<usize> {
    if bytes.len() < SHORT_LEN {
        return bytes.iter().position(|&byte| byte == first || byte == second);
    }
    memchr::memchr2(first, second, bytes)
}

/// Offset of the first of three bytes.
#[inline]
pub fn find3(first: u8, second: u8, third: u8, bytes: &[u8]) -> Option<usize> {
    if bytes.len() < SHORT_LEN {
        return bytes.iter().position(|&byte| byte == first || byte == second || byte == third);
    }
    memchr::memchr3(first, second, third, bytes)
}

/// Offset of the last `needle` in `bytes`.
#[inline]
pub fn rfind(needle: u8, bytes: &[u8]) -> Option<usize> {
    if bytes.len() < SHORT_LEN {
        return bytes.iter().rposition(|&byte| byte == needle);
    }
    memchr::memrchr(needle, bytes)
}

/// Bit masks of a text of at most [`SignMasks::MAX_LEN`] bytes, with one bit per byte: the lowest bit stands
/// for the first byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SignMasks {
    /// Line feeds.
    pub line_feeds: u64,
    /// `<`, `[`, the first byte of `◁`, and backticks: possible beginnings of tags, reasoning marks and code.
    pub marks: u64,
    /// Bytes that continue a character: all but the first of each. Other bytes are one character each.
    pub continuations: u64,
}

/// Bytes of one vector.
const BLOCK_LEN: usize = 16;

impl SignMasks {
    /// Maximum length of a text in bytes: a mask has a bit for each.
    pub const MAX_LEN: usize = 64;

    /// Computes the masks of `text`; `None` if it is too long.
    #[inline]
    #[must_use]
    pub fn scan(text: &str) -> Option<SignMasks> {
        let bytes = text.as_bytes();
        (bytes.len() <= SignMasks::MAX_LEN).then(|| scan_blocks(bytes))
    }

    /// Mask of the backticks in `text`, which must be the text that these masks were computed from.
    #[inline]
    #[must_use]
    pub fn backtick_mask(self, text: &[u8]) -> u64 {
        let (mut unread_marks, mut backticks) = (self.marks, 0);
        while unread_marks != 0 {
            let lowest_bit = unread_marks & unread_marks.wrapping_neg();
            if text[lowest_bit.trailing_zeros() as usize] == b'`' {
                backticks |= lowest_bit;
            }
            unread_marks ^= lowest_bit;
        }
        backticks
    }
}

/// Computes the masks of at most [`SignMasks::MAX_LEN`] bytes, block by block.
fn scan_blocks(bytes: &[u8]) -> SignMasks {
    let (mut line_feeds, mut marks, mut continuations) = (0, 0, 0);
    // `at` is the offset of the block, hence the bit of its first byte.
    let mut add_block = |block: [u8; BLOCK_LEN], at: usize| {
        let block = u8x16::new(block);
        let equals = |byte| block.simd_eq(u8x16::splat(byte));
        let bits = |found: u8x16| u64::from(found.to_bitmask()) << at;
        line_feeds |= bits(equals(b'\n'));
        // 0xE2 is the first byte of `◁`.
        marks |= bits(equals(b'<') | equals(b'[') | equals(0xE2) | equals(b'`'));
        // A continuation byte is 0b10xxxxxx. A bit mask takes the highest bit of each byte; the sum of a byte
        // with itself has the second highest bit there.
        continuations |= bits(block) & !bits(block + block);
    };
    match bytes.last_chunk::<BLOCK_LEN>() {
        None => add_block(pad_block(bytes), 0),
        Some(last) => {
            let (blocks, rest) = bytes.as_chunks::<BLOCK_LEN>();
            for (number, block) in blocks.iter().enumerate() {
                add_block(*block, number * BLOCK_LEN);
            }
            if !rest.is_empty() {
                // Bytes shared with the block before set the same bits again.
                add_block(*last, bytes.len() - BLOCK_LEN);
            }
        }
    }
    SignMasks { line_feeds, marks, continuations }
}

/// Pads fewer bytes than a block with zeros at their end.
#[inline]
fn pad_block(bytes: &[u8]) -> [u8; BLOCK_LEN] {
    // Two reads that may overlap instead of a copy of unknown length: of eight bytes each (first arm), or of
    // four (second arm). Fewer than four bytes are read one by one. Shared bytes set the same bits twice.
    let word = match (bytes.first_chunk(), bytes.last_chunk(), bytes.first_chunk(), bytes.last_chunk()) {
        (Some(first), Some(last), ..) => {
            let shift = 8 * (bytes.len() - 8);
            u128::from(u64::from_le_bytes(*first)) | u128::from(u64::from_le_bytes(*last)) << shift
        }
        (.., Some(first), Some(last)) => {
            let shift = 8 * (bytes.len() - 4);
            u128::from(u64::from(u32::from_le_bytes(*first)) | u64::from(u32::from_le_bytes(*last)) << shift)
        }
        _ => bytes.iter().rev().fold(0, |word, &byte| word << 8 | u128::from(byte)),
    };
    word.to_le_bytes()
}
