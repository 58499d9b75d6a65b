//! A column of numbers: bits above its least number, as many for each as makes the column shortest, and exceptions.
//!
//! `varint least | u8 width | packed bits | varint exceptions | for each exception: varint index, varint high bits`
//!
//! And a column of bytes: bits above the least of them, as many for each as the greatest takes.
//!
//! `u8 least | u8 width | packed bits`

use forebay_base::wire::{Reader, put_varint, varint_bytes};

/// About this many numbers decide how wide a column is.
const SAMPLE: usize = 128;

/// Appends a column.
pub(super) fn put_column(numbers: &[u64], out: &mut Vec<u8>) {
    let least = numbers.iter().copied().min().unwrap_or(0);
    let width = best_width(numbers, least);
    debug_assert!(width <= 64, "a number has 64 bits");
    put_varint(out, least);
    out.push(width as u8);
    let beyond = pack(numbers, least, width, out);
    if beyond == 0 {
        return out.push(0);
    }
    let is_exception = |number: u64| (number - least) >> width > 0;
    put_varint(out, numbers.iter().filter(|&&number| is_exception(number)).count() as u64);
    for (index, &number) in numbers.iter().enumerate().filter(|&(_, &number)| is_exception(number)) {
        put_varint(out, index as u64);
        put_varint(out, (number - least) >> width);
    }
}

/// Reads a column of this many numbers, in place of those in `numbers`. `None` where the bytes are none.
pub(super) fn get_column(from: &mut Reader<'_>, count: usize, numbers: &mut Vec<u64>) -> Option<()> {
    let least = from.varint()?;
    let width = from.u8()? as u32;
    if width > 64 {
        return None;
    }
    unpack(from.take((count * width as usize).div_ceil(8))?, count, least, width, numbers);
    let exceptions = from.varint()?;
    for _ in 0..exceptions {
        let index = usize::try_from(from.varint()?).ok()?;
        let high = from.varint()?.checked_shl(width)?;
        let number = numbers.get_mut(index)?;
        *number = number.wrapping_add(high);
    }
    Some(())
}

/// The width that makes the column shortest, or nearly: of long columns not every number is looked at.
fn best_width(numbers: &[u64], least: u64) -> u32 {
    let mut lengths = [0usize; 65];
    let looked_at = numbers.iter().step_by((numbers.len() / SAMPLE) | 1);
    looked_at.for_each(|number| lengths[64 - (number - least).leading_zeros() as usize] += 1);
    let count: usize = lengths.iter().sum();
    let longest = lengths.iter().rposition(|&count| count > 0).unwrap_or(0);
    // What an exception costs besides: its index, and its high bits in sevens.
    let index_bits = 8 * varint_bytes(numbers.len() as u64);
    let cost = |width: usize| {
        let exceptions = (width + 1..=longest)
            .map(|length| lengths[length] * (index_bits + 8 * (length - width).div_ceil(7)));
        count * width + exceptions.sum::<usize>()
    };
    (0..=longest).min_by_key(|&width| cost(width)).unwrap_or(longest) as u32
}

fn mask(width: u32) -> u64 {
    u64::MAX.checked_shr(64 - width).unwrap_or(0)
}

/// Appends the low bits of each number. Returns the join of what lies beyond them.
fn pack(numbers: &[u64], least: u64, width: u32, out: &mut Vec<u8>) -> u64 {
    let (mask, mut bits, mut held, mut beyond) = (mask(width), 0u128, 0u32, 0);
    out.reserve(numbers.len() * width as usize / 8 + 8);
    for number in numbers {
        beyond |= (number - least) & !mask;
        bits |= (((number - least) & mask) as u128) << held;
        held += width;
        while held >= 32 {
            out.extend_from_slice(&(bits as u32).to_le_bytes());
            bits >>= 32;
            held -= 32;
        }
    }
    debug_assert!(held < 32 && bits >> held == 0, "no bit is left behind");
    out.extend_from_slice(&bits.to_le_bytes()[..(held as usize).div_ceil(8)]);
    beyond
}

fn unpack(packed: &[u8], count: usize, least: u64, width: u32, numbers: &mut Vec<u64>) {
    numbers.clear();
    if width == 0 {
        return numbers.resize(count, least);
    }
    let mask = mask(width);
    // What fits a word wherever it begins in a byte is read as a word, but near the end.
    let words = if width <= 56 { packed.len().saturating_sub(8) * 8 / width as usize } else { 0 }.min(count);
    numbers.extend((0..words).map(|index| {
        let bit = index * width as usize;
        let word = packed[bit / 8..].first_chunk().map_or(0, |chunk| u64::from_le_bytes(*chunk));
        least.wrapping_add(word >> (bit % 8) & mask)
    }));
    numbers.extend((words..count).map(|index| {
        let bit = index * width as usize;
        let rest = &packed[bit / 8..];
        let bits = match rest.first_chunk() {
            Some(chunk) => u128::from_le_bytes(*chunk),
            None => {
                let mut chunk = [0; 16];
                chunk[..rest.len()].copy_from_slice(rest);
                u128::from_le_bytes(chunk)
            }
        };
        least.wrapping_add((bits >> (bit % 8)) as u64 & mask)
    }));
}

/// Appends bytes, eight at a time: lower-case letters take five bits each, digits four.
pub(super) fn put_symbols(bytes: &[u8], out: &mut Vec<u8>) {
    let (least, most) =
        bytes.iter().fold((u8::MAX, 0), |(least, most), &byte| (byte.min(least), byte.max(most)));
    let width = (u8::BITS - most.saturating_sub(least).leading_zeros()) as usize;
    out.extend_from_slice(&[least, width as u8]);
    if width == 8 {
        return out.extend_from_slice(bytes);
    }
    out.reserve(bytes.len().div_ceil(8) * width + 8);
    debug_assert!(width < 8 && least <= most || bytes.is_empty());
    let (eights, rest) = bytes.as_chunks::<8>();
    let mut put = |eight: &[u8; 8]| {
        let word = squeeze(u64::from_le_bytes(*eight) - every_byte(least), width as u32);
        out.extend_from_slice(&word.to_le_bytes());
        out.truncate(out.len() - (8 - width));
    };
    eights.iter().for_each(&mut put);
    if !rest.is_empty() {
        let mut last = [least; 8];
        last[..rest.len()].copy_from_slice(rest);
        put(&last);
    }
}

/// Appends this many bytes of a column. `None` where there are not this many.
pub(super) fn get_symbols(from: &mut Reader<'_>, count: usize, bytes: &mut Vec<u8>) -> Option<()> {
    let (least, width) = (from.u8()?, from.u8()? as usize);
    if width >= 8 {
        bytes.extend_from_slice(from.take(count)?);
        return (width == 8).then_some(());
    }
    let end = bytes.len() + count;
    if width == 0 {
        bytes.resize(end, least);
        return Some(());
    }
    let packed = from.take(count.div_ceil(8) * width)?;
    bytes.reserve(count + 8);
    for start in (0..packed.len()).step_by(width) {
        let word = match packed[start..].first_chunk() {
            Some(word) => u64::from_le_bytes(*word),
            None => {
                let mut word = [0; 8];
                word[..packed.len() - start].copy_from_slice(&packed[start..]);
                u64::from_le_bytes(word)
            }
        };
        let eight = spread(word, width as u32).wrapping_add(every_byte(least));
        bytes.extend_from_slice(&eight.to_le_bytes());
    }
    bytes.truncate(end);
    Some(())
}

/// A word all of whose bytes are this one.
fn every_byte(byte: u8) -> u64 {
    u64::from_le_bytes([byte; 8])
}

/// The low bits of each byte, side by side: pairs join, then pairs of pairs, then those.
#[inline]
fn squeeze(word: u64, width: u32) -> u64 {
    debug_assert!(width < 8 && word & !every_byte(mask(width) as u8) == 0, "each byte has {width} bits");
    let spare = 8 - width;
    let join = |word: u64, low: u64, shift: u32| word & low | (word & !low) >> shift;
    let word = join(word, 0x00ff_00ff_00ff_00ff, spare);
    let word = join(word, 0x0000_ffff_0000_ffff, 2 * spare);
    join(word, 0x0000_0000_ffff_ffff, 4 * spare)
}

/// The inverse of [`squeeze`], whatever lies above the bits of eight bytes.
#[inline]
fn spread(word: u64, width: u32) -> u64 {
    let spare = 8 - width;
    let part = |word: u64, low: u64, shift: u32| word & low | (word & !low) << shift;
    let word = part(word & mask(8 * width), mask(4 * width), 4 * spare);
    let twice = mask(2 * width);
    let word = part(word, twice | twice << 32, 2 * spare);
    let once = mask(width);
    part(word, once | once << 16 | once << 32 | once << 48, spare)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn columns_come_back(numbers: Vec<(u64, u32)>) {
            let numbers: Vec<u64> = numbers.iter().map(|(number, bits)| number >> (bits % 64)).collect();
            let mut bytes = Vec::new();
            put_column(&numbers, &mut bytes);
            let (mut reader, mut found) = (Reader::new(&bytes), vec![7]);
            prop_assert_eq!(get_column(&mut reader, numbers.len(), &mut found), Some(()));
            prop_assert_eq!(reader.remaining(), 0);
            prop_assert_eq!(&found, &numbers);
            for cut in 0..bytes.len() {
                let read = get_column(&mut Reader::new(&bytes[..cut]), numbers.len(), &mut found);
                prop_assert_eq!(read, None, "cut at {}", cut);
            }
        }

        #[test]
        fn symbols_come_back(bytes: Vec<u8>, low: u8, width in 0..9u32) {
            let bytes: Vec<u8> =
                bytes.iter().map(|byte| low.saturating_add((u32::from(*byte) & ((1 << width) - 1)) as u8)).collect();
            let mut packed = Vec::new();
            put_symbols(&bytes, &mut packed);
            let (mut reader, mut found) = (Reader::new(&packed), vec![7]);
            prop_assert_eq!(get_symbols(&mut reader, bytes.len(), &mut found), Some(()));
            prop_assert_eq!(reader.remaining(), 0);
            prop_assert_eq!(&found[1..], &bytes);
            for cut in 0..packed.len() {
                let read = get_symbols(&mut Reader::new(&packed[..cut]), bytes.len(), &mut Vec::new());
                prop_assert_eq!(read, None, "cut at {}", cut);
            }
        }

        #[test]
        fn rubbish_is_refused_or_is_a_column_of_that_length(bytes: Vec<u8>, width in 0..70u8, count in 0..40usize) {
            // With a width of its own some of it is read.
            let bytes = [&[5, width], &bytes[..]].concat();
            let (mut reader, mut numbers) = (Reader::new(&bytes), vec![7; 3]);
            let read = get_column(&mut reader, count, &mut numbers);
            prop_assert_eq!(read.is_some(), read.is_some() && width <= 64 && numbers.len() == count);
            let room = (bytes.len() - 2) * 8 / usize::from(width.max(1));
            prop_assert!(read.is_none() || width == 0 || count <= room, "{count} numbers of {width} bits in {room}");
            if read.is_some() {
                let (mut again, mut found) = (Vec::new(), Vec::new());
                put_column(&numbers, &mut again);
                prop_assert_eq!(get_column(&mut Reader::new(&again), count, &mut found), Some(()));
                prop_assert_eq!(found, numbers);
            }
            let (mut reader, mut symbols) = (Reader::new(&bytes), vec![7]);
            let read = get_symbols(&mut reader, count, &mut symbols);
            let packed_bytes = match width {
                8 => count,
                _ => count.div_ceil(8) * usize::from(width),
            };
            prop_assert_eq!(read.is_some(), width <= 8 && packed_bytes <= bytes.len() - 2);
            prop_assert!(read.is_none() || symbols.len() == 1 + count && symbols[0] == 7);
        }
    }

    #[test]
    fn small_counts_take_few_bits() {
        let numbers: Vec<u64> =
            (0..1000).map(|index| if index % 100 == 0 { 1 << 40 } else { 1 + index % 4 }).collect();
        let mut bytes = Vec::new();
        put_column(&numbers, &mut bytes);
        assert!(bytes.len() < 500, "{} bytes", bytes.len());
    }
}
