//! Slices as pictures: a byte a pixel in memory, PNG on disk and in the page.
//!
//! Called by the verb, which writes pictures and reads a person's own with `--input`, and by
//! [`page`](super::page). A line of a slice is one unit of the segment that carries it.
//!
//! Invariant: what is streamed and scored are the bytes; colours exist only in PNG files.

use std::fmt;
use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};

/// The largest picture that is read, in pixels.
const MOST_PIXELS: u64 = 100_000_000;
/// The palette entry of a missing line.
const HOLE: u8 = 0;
/// Red, green and blue of -1, ..., 0, ..., +1: the diverging scheme RdBu of ColorBrewer, safe for the colour-blind.
const DIVERGING: [[u8; 3]; 11] = [
    [5, 48, 97],
    [33, 102, 172],
    [67, 147, 195],
    [146, 197, 222],
    [209, 229, 240],
    [247, 247, 247],
    [253, 219, 199],
    [244, 165, 130],
    [214, 96, 77],
    [178, 24, 43],
    [103, 0, 31],
];

/// One picture, a byte a pixel, line after line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Slice {
    /// Pixels of a line.
    pub width: usize,
    /// Lines.
    pub height: usize,
    /// `width * height` bytes.
    pub bytes: Vec<u8>,
}

/// How bytes become colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Colours {
    /// Blue below 128, white at 128, red above; missing lines black.
    Diverging,
    /// Black to white; missing lines yellow.
    Grey,
}

impl Colours {
    /// The colour of a missing line.
    pub(crate) const fn hole(self) -> [u8; 3] {
        match self {
            Self::Diverging => [0, 0, 0],
            Self::Grey => [255, 208, 0],
        }
    }

    /// The colour of a byte.
    fn colour(self, byte: u8) -> [u8; 3] {
        match self {
            Self::Grey => [byte; 3],
            Self::Diverging => {
                // From 1 to 255, in 254 steps, over the ten stretches between the eleven colours.
                let place = (usize::from(byte.max(1)) - 1) * 10;
                let (index, part) = (place / 254, place % 254);
                let (from, to) = (DIVERGING[index], DIVERGING[(index + 1).min(10)]);
                std::array::from_fn(|i| ((usize::from(from[i]) * (254 - part) + usize::from(to[i]) * part + 127) / 254) as u8)
            }
        }
    }

    /// Red, green and blue of all palette entries.
    fn palette(self) -> Vec<u8> {
        let entry = |index: u8| if index == HOLE { self.hole() } else { self.colour(index) };
        (0..=255).flat_map(entry).collect()
    }
}

/// The slice as a PNG file in memory; the lines in `holes` have a colour of their own. Numbers beyond the last line are
/// ignored.
///
/// # Errors
/// When the slice's bytes are not `width * height`, or the encoder refuses it.
// Limit: the palette has 256 entries, one is for missing lines, so the bytes 0 and 1 have the same colour.
pub(crate) fn png(slice: &Slice, holes: &[usize], colours: Colours) -> Result<Vec<u8>, PictureError> {
    let refused = |reason: String| PictureError::Encode { width: slice.width, height: slice.height, reason };
    let sides = (u32::try_from(slice.width), u32::try_from(slice.height));
    let (Ok(width), Ok(height)) = sides else { return Err(refused("the picture is too large".into())) };
    let mut indices: Vec<u8> = slice.bytes.iter().map(|&byte| byte.max(1)).collect();
    for &hole in holes.iter().filter(|&&hole| hole < slice.height) {
        if let Some(line) = indices.get_mut(hole * slice.width..(hole + 1) * slice.width) {
            line.fill(HOLE);
        }
    }
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, width, height);
    encoder.set_color(png::ColorType::Indexed);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_palette(colours.palette());
    encoder.set_compression(png::Compression::Balanced);
    let mut writer = encoder.write_header().map_err(|error| refused(error.to_string()))?;
    writer.write_image_data(&indices).map_err(|error| refused(error.to_string()))?;
    writer.finish().map_err(|error| refused(error.to_string()))?;
    Ok(file)
}

/// The slice at most `side` pixels wide and high, by averaging, with the missing lines that it shows: a line of the
/// result is missing when any line it stands for is.
pub(crate) fn reduced(slice: &Slice, holes: &[usize], side: usize) -> (Slice, Vec<usize>) {
    let longest = slice.width.max(slice.height);
    if side == 0 || longest <= side {
        return (slice.clone(), holes.to_vec());
    }
    let length = |pixels: usize| (pixels * side / longest).max(1);
    let (width, height) = (length(slice.width), length(slice.height));
    let mut shown: Vec<usize> = holes.iter().filter(|&&hole| hole < slice.height).map(|hole| hole * height / slice.height).collect();
    shown.sort_unstable();
    shown.dedup();
    (resized(slice, width, height), shown)
}

/// The part of the slice round the pixel at `column` and `line`, at most `side` pixels wide and high, with the missing
/// lines in it.
pub(crate) fn detail(slice: &Slice, holes: &[usize], (column, line): (usize, usize), side: usize) -> (Slice, Vec<usize>) {
    let (width, height) = (slice.width.min(side), slice.height.min(side));
    let left = column.saturating_sub(width / 2).min(slice.width - width);
    let top = line.saturating_sub(height / 2).min(slice.height - height);
    let lines = slice.bytes.chunks_exact(slice.width.max(1)).skip(top).take(height);
    let bytes = lines.flat_map(|line| &line[left..left + width]).copied().collect();
    let shown = holes.iter().filter(|&&hole| (top..top + height).contains(&hole)).map(|hole| hole - top).collect();
    (Slice { width, height, bytes }, shown)
}

/// The slice with `width` by `height` pixels: each is the mean of the pixels it covers, or the nearest one when it
/// covers less than one.
fn resized(slice: &Slice, width: usize, height: usize) -> Slice {
    let stretch = |index: usize, from: usize, to: usize| {
        let first = index * from / to;
        first..((index + 1) * from / to).max(first + 1).min(from)
    };
    let mut bytes = Vec::with_capacity(width * height);
    for line in 0..height {
        let lines = stretch(line, slice.height, height);
        for column in 0..width {
            let columns = stretch(column, slice.width, width);
            let covered = lines.clone().filter_map(|line| slice.bytes.get(line * slice.width..)?.get(columns.clone()));
            let sum: u64 = covered.flatten().map(|&byte| u64::from(byte)).sum();
            let count = (lines.len() * columns.len()).max(1) as u64;
            bytes.push(((sum + count / 2) / count).min(255) as u8);
        }
    }
    Slice { width, height, bytes }
}

/// A person's own pictures: the files of `directory` whose names end in `.png`, by name, at most `most` of them, each
/// made grey, cropped to the square in its middle and scaled to `side` by `side` pixels.
///
/// # Errors
/// When the directory cannot be read, has no such file, or one of the files cannot be decoded; the error names it.
// Why: the size is that of the simulation's slices, so that results with one's own pictures can be compared with its.
pub(crate) fn read_directory(directory: &Path, side: usize, most: usize) -> Result<Vec<Slice>, PictureError> {
    let unreadable = |error: std::io::Error| PictureError::Directory { path: directory.into(), reason: error.to_string() };
    let mut paths = Vec::new();
    for entry in fs::read_dir(directory).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("png")) && path.is_file() {
            paths.push(path);
        }
    }
    if paths.is_empty() {
        return Err(PictureError::NoPictures { path: directory.into() });
    }
    paths.sort();
    paths.iter().take(most).map(|path| read(path, side)).collect()
}

/// Reads one picture.
fn read(path: &Path, side: usize) -> Result<Slice, PictureError> {
    let refused = |reason: String| PictureError::Decode { path: path.into(), reason };
    let file = File::open(path).map_err(|error| refused(error.to_string()))?;
    let mut decoder = png::Decoder::new(BufReader::new(file));
    decoder.set_transformations(png::Transformations::normalize_to_color8());
    let mut reader = decoder.read_info().map_err(|error| refused(error.to_string()))?;
    let (width, height) = reader.info().size();
    if u64::from(width) * u64::from(height) > MOST_PIXELS {
        return Err(refused(format!("it has {width} x {height} pixels, and at most {MOST_PIXELS} are read")));
    }
    let size = reader.output_buffer_size().ok_or_else(|| refused("it is too large for this machine".into()))?;
    let mut samples = vec![0; size];
    let frame = reader.next_frame(&mut samples).map_err(|error| refused(error.to_string()))?;
    samples.truncate(frame.buffer_size());
    let bytes = grey(&samples, frame.color_type);
    let (width, height) = (frame.width as usize, frame.height as usize);
    if width == 0 || height == 0 || bytes.len() != width * height {
        return Err(refused("it has a form of pixels that is not known here".into()));
    }
    Ok(resized(&middle_square(&Slice { width, height, bytes }), side, side))
}

/// The luminance (ITU-R BT.601) of pixels of eight-bit samples; what is transparent shows white.
fn grey(samples: &[u8], colour: png::ColorType) -> Vec<u8> {
    let luminance = |pixel: &[u8]| match *pixel {
        [red, green, blue, ..] => (299 * u32::from(red) + 587 * u32::from(green) + 114 * u32::from(blue) + 500) / 1000,
        [grey, ..] => u32::from(grey),
        [] => 0,
    };
    let on_white = |value: u32, alpha: u8| (value * u32::from(alpha) + 255 * (255 - u32::from(alpha)) + 127) / 255;
    let count = colour.samples();
    let pixel = |pixel: &[u8]| match *pixel {
        [red, green, blue, alpha] => on_white(luminance(&[red, green, blue]), alpha) as u8,
        [grey, alpha] => on_white(u32::from(grey), alpha) as u8,
        _ => luminance(pixel) as u8,
    };
    samples.chunks_exact(count).map(pixel).collect()
}

/// The largest square in the middle of a picture.
fn middle_square(slice: &Slice) -> Slice {
    let side = slice.width.min(slice.height);
    detail(slice, &[], (slice.width / 2, slice.height / 2), side).0
}

/// Why a picture could not be read or written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PictureError {
    /// The directory cannot be listed.
    Directory {
        /// The directory.
        path: PathBuf,
        /// What the system says.
        reason: String,
    },
    /// The directory holds no PNG file.
    NoPictures {
        /// The directory.
        path: PathBuf,
    },
    /// A file is not a PNG picture that can be read.
    Decode {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A picture cannot be written as PNG.
    Encode {
        /// Its width in pixels.
        width: usize,
        /// Its height in pixels.
        height: usize,
        /// What is wrong with it.
        reason: String,
    },
}

impl fmt::Display for PictureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory { path, reason } => {
                write!(f, "the directory {} cannot be read ({reason}); name a directory with PNG pictures", path.display())
            }
            Self::NoPictures { path } => {
                write!(f, "the directory {} has no file whose name ends in .png; put pictures there or name another", path.display())
            }
            Self::Decode { path, reason } => {
                write!(f, "{} cannot be read as a PNG picture: {reason}; repair it or take it out of the directory", path.display())
            }
            Self::Encode { width, height, reason } => {
                write!(f, "a picture of {width} x {height} pixels cannot be written as PNG: {reason}")
            }
        }
    }
}

impl std::error::Error for PictureError {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// A new empty directory, removed when dropped.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new() -> Self {
            static COUNT: AtomicU32 = AtomicU32::new(0);
            let name = format!("segstream-picture-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
            let path = std::env::temp_dir().join(name);
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn write(path: &Path, size: (u32, u32), colour: png::ColorType, depth: png::BitDepth, data: &[u8]) {
        let mut encoder = png::Encoder::new(File::create(path).unwrap(), size.0, size.1);
        encoder.set_color(colour);
        encoder.set_depth(depth);
        if colour == png::ColorType::Indexed {
            encoder.set_palette(vec![0, 0, 0, 255, 255, 255]);
        }
        encoder.write_header().unwrap().write_image_data(data).unwrap();
    }

    #[test]
    fn every_form_of_pixels_becomes_grey_of_the_size_asked_for() {
        use png::{BitDepth, ColorType};
        let scratch = Scratch::new();
        let forms: [(&str, ColorType, BitDepth, &[u8], u8); 7] = [
            ("a.png", ColorType::Grayscale, BitDepth::Eight, &[200], 200),
            ("b.png", ColorType::Grayscale, BitDepth::Sixteen, &[200, 7], 200),
            ("c.png", ColorType::Rgb, BitDepth::Eight, &[255, 0, 0], 76),
            ("d.PNG", ColorType::Rgba, BitDepth::Eight, &[0, 0, 0, 0], 255),
            ("e.png", ColorType::GrayscaleAlpha, BitDepth::Eight, &[100, 255], 100),
            ("f.png", ColorType::Indexed, BitDepth::Eight, &[1], 255),
            ("g.png", ColorType::Grayscale, BitDepth::One, &[0x80], 255),
        ];
        for (name, colour, depth, data, _) in forms {
            write(&scratch.0.join(name), (1, 1), colour, depth, data);
        }
        fs::write(scratch.0.join("notes.txt"), "not a picture").unwrap();
        let slices = read_directory(&scratch.0, 4, 100).unwrap();
        assert_eq!(slices.len(), forms.len());
        for (slice, form) in slices.iter().zip(forms) {
            assert_eq!((slice.width, slice.height, slice.bytes.as_slice()), (4, 4, [form.4; 16].as_slice()), "{}", form.0);
        }
        assert_eq!(read_directory(&scratch.0, 4, 2).unwrap().len(), 2);
    }

    #[test]
    fn an_error_names_the_directory_or_the_file() {
        let scratch = Scratch::new();
        let empty = read_directory(&scratch.0, 4, 9).unwrap_err();
        assert_eq!(empty, PictureError::NoPictures { path: scratch.0.clone() });
        fs::write(scratch.0.join("broken.png"), "no picture at all").unwrap();
        assert!(read_directory(&scratch.0, 4, 9).unwrap_err().to_string().contains("broken.png"));
        let missing = read_directory(&scratch.0.join("nowhere"), 4, 9).unwrap_err();
        assert!(matches!(missing, PictureError::Directory { .. }) && missing.to_string().contains("nowhere"));
    }

    #[test]
    fn a_large_picture_is_cropped_to_its_middle_and_averaged() {
        let scratch = Scratch::new();
        // Six columns by two lines: the middle square holds 10, 20 / 30, 40.
        let data = [1, 1, 10, 20, 1, 1, 1, 1, 30, 40, 1, 1];
        write(&scratch.0.join("wide.png"), (6, 2), png::ColorType::Grayscale, png::BitDepth::Eight, &data);
        assert_eq!(read_directory(&scratch.0, 1, 1).unwrap()[0].bytes, [25]);
        assert_eq!(read_directory(&scratch.0, 2, 1).unwrap()[0].bytes, [10, 20, 30, 40]);
    }

    #[test]
    fn the_colour_of_a_missing_line_is_no_other_lines() {
        let slice = Slice { width: 3, height: 3, bytes: vec![0, 128, 255, 0, 128, 255, 0, 128, 255] };
        let file = png(&slice, &[1, 77], Colours::Diverging).unwrap();
        let mut decoder = png::Decoder::new(std::io::Cursor::new(file));
        decoder.set_transformations(png::Transformations::normalize_to_color8());
        let mut reader = decoder.read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        reader.next_frame(&mut pixels).unwrap();
        assert_eq!(pixels[..9], [5, 48, 97, 247, 247, 247, 103, 0, 31]);
        assert_eq!(pixels[9..18], [0; 9]);
        assert!((1..=255).all(|byte| Colours::Diverging.colour(byte) != Colours::Diverging.hole()));
        assert!((0..=255).all(|byte| Colours::Grey.colour(byte) != Colours::Grey.hole()));
    }

    #[test]
    fn a_reduced_picture_keeps_every_missing_line_in_sight() {
        let slice = Slice { width: 8, height: 8, bytes: vec![9; 64] };
        let (small, holes) = reduced(&slice, &[2, 3, 7], 4);
        assert_eq!((small.width, small.height, small.bytes), (4, 4, vec![9; 16]));
        assert_eq!(holes, [1, 3]);
    }

    #[test]
    fn a_detail_stays_inside_the_picture() {
        let slice = Slice { width: 4, height: 4, bytes: (0..16).collect() };
        let (corner, holes) = detail(&slice, &[0, 2, 3], (3, 3), 2);
        assert_eq!((corner.bytes.as_slice(), holes.as_slice()), ([10, 11, 14, 15].as_slice(), [0, 1].as_slice()));
        assert_eq!(detail(&slice, &[], (0, 0), 2).0.bytes, [0, 1, 4, 5]);
        assert_eq!(detail(&slice, &[1], (2, 2), 9), (slice, vec![1]));
    }

    #[test]
    fn a_slice_of_the_wrong_length_is_refused() {
        let slice = Slice { width: 4, height: 4, bytes: vec![0; 7] };
        assert!(matches!(png(&slice, &[3], Colours::Grey), Err(PictureError::Encode { width: 4, .. })));
    }
}
