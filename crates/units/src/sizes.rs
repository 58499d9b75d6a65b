//! Sizes in bytes, as a person writes them: `4096`, `64K`, `600M`, `2G`. The units are powers of 1024.

/// The number of bytes that `text` stands for.
pub fn parse(text: &str) -> Result<u64, String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let shift = match unit.trim_start().to_ascii_uppercase().as_str() {
        "" | "B" => 0,
        "K" | "KB" | "KIB" => 10,
        "M" | "MB" | "MIB" => 20,
        "G" | "GB" | "GIB" => 30,
        "T" | "TB" | "TIB" => 40,
        _ => return Err("a size is a whole number and K, M, G or T, such as 600M".into()),
    };
    let number: u64 =
        number.parse().map_err(|_| "a size is a whole number and K, M, G or T, such as 600M".to_string())?;
    number.checked_mul(1 << shift).ok_or_else(|| "more bytes than there are".to_string())
}

/// `bytes` in the unit that leaves one to four digits before the point.
pub fn human(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        for (text, bytes) in
            [("0", 0), ("4096", 4096), ("64K", 65536), ("64k", 65536), ("600M", 600 << 20), ("2GiB", 2 << 30)]
        {
            assert_eq!(parse(text), Ok(bytes), "{text}");
        }
        for wrong in ["", "M", "-1", "1.5G", "64Q", "1 2", "99999999999999T", "18446744073709551616"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn sizes_are_told_briefly() {
        for (bytes, text) in [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (3 << 29, "1.5 GiB")] {
            assert_eq!(human(bytes), text);
        }
    }
}
