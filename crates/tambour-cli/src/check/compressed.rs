//! Files compressed by gzip or zstd, read as they are decompressed.

use std::io::{self, BufRead, BufReader, Cursor, Read};

use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

const GZIP_MARK: &[u8] = &[0x1F, 0x8B];
const ZSTD_MARK: &[u8] = &[0x28, 0xB5, 0x2F, 0xFD];
/// Last bytes of the mark of a skippable frame, which a file of zstd may begin with; the first one is 0x50 to
/// 0x5F.
const SKIPPABLE_END: &[u8] = &[0x2A, 0x4D, 0x18];

/// Returns whether a file with these first bytes is compressed in a form that [`decompress`] reads.
pub(super) fn is_compressed(bytes: &[u8]) -> bool {
    bytes.starts_with(GZIP_MARK) || is_zstd(bytes)
}

fn is_zstd(bytes: &[u8]) -> bool {
    let is_skippable = bytes.first().is_some_and(|first| first & 0xF0 == 0x50)
        && bytes.get(1..).is_some_and(|rest| rest.starts_with(SKIPPABLE_END));
    bytes.starts_with(ZSTD_MARK) || is_skippable
}

/// Reader of the content of `source`, which may be compressed; its first bytes decide.
///
/// # Errors
/// The source cannot be read. Reading fails where compressed data is malformed or cut.
pub(super) fn decompress(source: impl Read + Send + 'static) -> io::Result<Box<dyn Read + Send>> {
    let mut source = BufReader::with_capacity(64 << 10, source);
    let mut start = Vec::new();
    source.by_ref().take(ZSTD_MARK.len() as u64).read_to_end(&mut start)?;
    let (is_gzip, is_zstd) = (start.starts_with(GZIP_MARK), is_zstd(&start));
    let source = Cursor::new(start).chain(source);
    Ok(match () {
        () if is_gzip => Box::new(MultiGzDecoder::new(source)),
        () if is_zstd => Box::new(ZstdReader { source, decoder: FrameDecoder::new(), is_in_frame: false }),
        () => Box::new(source),
    })
}

/// Reader of the frames of a zstd file, one after the other. A frame whose window is larger than
/// [`ruzstd::decoding::DEFAULT_MAX_WINDOW_SIZE`] is refused.
struct ZstdReader<R> {
    source: R,
    decoder: FrameDecoder,
    is_in_frame: bool,
}

impl<R: BufRead> Read for ZstdReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if !self.is_in_frame && !self.begin_frame()? {
                return Ok(0);
            }
            let decoder = &mut self.decoder;
            while decoder.can_collect() == 0 && !decoder.is_finished() {
                let strategy = BlockDecodingStrategy::UptoBlocks(1);
                decoder.decode_blocks(&mut self.source, strategy).map_err(malformed)?;
            }
            let length = decoder.read(buffer)?;
            if length > 0 || buffer.is_empty() {
                return Ok(length);
            }
            self.is_in_frame = false;
            let expected = decoder.get_checksum_from_data();
            if expected.is_some() && expected != decoder.get_calculated_checksum() {
                return Err(malformed("the checksum of a zstd frame is wrong"));
            }
        }
    }
}

impl<R: BufRead> ZstdReader<R> {
    /// Reads the start of the next frame; returns `false` at the end of the file.
    fn begin_frame(&mut self) -> io::Result<bool> {
        while !self.source.fill_buf()?.is_empty() {
            match self.decoder.reset(&mut self.source) {
                Ok(()) => {
                    self.is_in_frame = true;
                    return Ok(true);
                }
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    io::copy(&mut self.source.by_ref().take(length.into()), &mut io::sink())?;
                }
                Err(error) => return Err(malformed(error)),
            }
        }
        Ok(false)
    }
}

fn malformed(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}
