//! Searching for one to three bytes: a plain loop where the text is as short as a token of a model, memchr elsewhere.

/// Below this many bytes the call of a vector routine costs more than the loop.
const SHORT: usize = 12;

/// Where `needle` stands in `bytes`.
#[inline]
pub fn find(needle: u8, bytes: &[u8]) -> Option<usize> {
    if bytes.len() < SHORT {
        return bytes.iter().position(|&byte| byte == needle);
    }
    memchr::memchr(needle, bytes)
}

/// Where the first of two bytes stands.
#[inline]
pub fn find2(first: u8, second: u8, bytes: &[u8]) -> Option<usize> {
    if bytes.len() < SHORT {
        return bytes.iter().position(|&byte| byte == first || byte == second);
    }
    memchr::memchr2(first, second, bytes)
}

/// Where the first of three bytes stands.
#[inline]
pub fn find3(first: u8, second: u8, third: u8, bytes: &[u8]) -> Option<usize> {
    if bytes.len() < SHORT {
        return bytes.iter().position(|&byte| byte == first || byte == second || byte == third);
    }
    memchr::memchr3(first, second, third, bytes)
}

/// Where `needle` stands last.
#[inline]
pub fn rfind(needle: u8, bytes: &[u8]) -> Option<usize> {
    if bytes.len() < SHORT {
        return bytes.iter().rposition(|&byte| byte == needle);
    }
    memchr::memrchr(needle, bytes)
}
