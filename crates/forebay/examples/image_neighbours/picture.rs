//! Images as they are decoded, and small ones in shades of grey made of them.

use std::error::Error;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use zune_jpeg::JpegDecoder;

/// Rows of pixels, one byte a channel: grey or red, green and blue, each perhaps with how opaque it is.
pub(crate) struct Picture {
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) channels: usize,
    pub(crate) bytes: Vec<u8>,
}

impl Picture {
    /// Reads a file that is called `.png`, or else is JPEG.
    pub(crate) fn read(path: &Path) -> Result<Self, Box<dyn Error>> {
        let file = BufReader::new(File::open(path)?);
        match path.extension().is_some_and(|end| end.eq_ignore_ascii_case("png")) {
            true => Self::read_png(file),
            false => Self::read_jpeg(file),
        }
    }

    fn read_png(file: BufReader<File>) -> Result<Self, Box<dyn Error>> {
        let mut decoder = png::Decoder::new(file);
        decoder.set_transformations(png::Transformations::normalize_to_color8());
        let mut reader = decoder.read_info()?;
        let mut bytes = vec![0; reader.output_buffer_size().ok_or("too large")?];
        let info = reader.next_frame(&mut bytes)?;
        let (width, height) = (info.width as usize, info.height as usize);
        Ok(Self { width, height, channels: info.color_type.samples(), bytes })
    }

    fn read_jpeg(file: BufReader<File>) -> Result<Self, Box<dyn Error>> {
        let mut decoder = JpegDecoder::new(file);
        let bytes = decoder.decode()?;
        let (width, height) = decoder.dimensions().ok_or("no dimensions")?;
        let channels = decoder.output_colorspace().ok_or("no colours")?.num_components();
        Ok(Self { width, height, channels, bytes })
    }

    /// Shades of grey, on white where it is transparent, each the mean of the pixels that fall together.
    pub(crate) fn shrink<const SIDE: usize>(&self) -> [[f32; SIDE]; SIDE] {
        let span = |at: usize, length: usize| {
            let start = at * length / SIDE;
            start..((at + 1) * length / SIDE).max(start + 1)
        };
        std::array::from_fn(|row| {
            std::array::from_fn(|column| {
                let (mut sum, mut pixels) = (0.0, 0.0);
                for y in span(row, self.height) {
                    for x in span(column, self.width) {
                        let start = (y * self.width + x) * self.channels;
                        sum += shade(&self.bytes[start..start + self.channels]);
                        pixels += 1.0;
                    }
                }
                sum / pixels
            })
        })
    }
}

fn shade(pixel: &[u8]) -> f32 {
    let [first, second, third, opaque] = match *pixel {
        [grey] => [grey, grey, grey, 255],
        [grey, opaque] => [grey, grey, grey, opaque],
        [red, green, blue] => [red, green, blue, 255],
        [red, green, blue, opaque, ..] => [red, green, blue, opaque],
        [] => [255; 4],
    }
    .map(f32::from);
    // As the eye weighs colours.
    let grey = 0.299 * first + 0.587 * second + 0.114 * third;
    255.0 + (grey - 255.0) * opaque / 255.0
}
