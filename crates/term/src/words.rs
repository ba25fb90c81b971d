//! Figures as people read them: three digits and a prefix.

use dacapo::text::format_duration;

/// Bytes with a binary prefix and three digits.
#[must_use]
pub fn bytes_words(bytes: u64) -> String {
    let mut value = bytes as f64;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if value < 999.5 {
            return words(value, unit, unit != "B");
        }
        value /= 1024.0;
    }
    words(value, "TiB", true)
}

/// Bits per second with a prefix and three digits.
#[must_use]
pub fn rate_words(bps: f64) -> String {
    let mut value = bps;
    for unit in ["bit/s", "kbit/s", "Mbit/s"] {
        if value < 999.5 {
            return words(value, unit, true);
        }
        value /= 1000.0;
    }
    words(value, "Gbit/s", true)
}

fn words(value: f64, unit: &str, has_parts: bool) -> String {
    let digits = match value {
        _ if !has_parts => 0,
        value if value < 9.995 => 2,
        value if value < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.digits$} {unit}")
}

/// A length of time in the unit that suits it.
#[must_use]
pub fn seconds_words(seconds: f64) -> String {
    match seconds {
        seconds if seconds >= 100_000.0 => "days".to_owned(),
        seconds if seconds >= 120.0 => {
            format!("{} min {} s", seconds as u64 / 60, seconds as u64 % 60)
        }
        seconds if seconds >= 10.0 => format!("{seconds:.0} s"),
        seconds if seconds >= 0.01 => format_duration((seconds * 1_000.0) as u64 * 1_000_000),
        seconds => format_duration((seconds * 1_000_000.0) as u64 * 1_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_digits_and_a_prefix() {
        assert_eq!(bytes_words(0), "0 B");
        assert_eq!(bytes_words(999), "999 B");
        assert_eq!(bytes_words(1_024), "1.00 KiB");
        assert_eq!(bytes_words(5 << 30), "5.00 GiB");
        assert_eq!(rate_words(1e9), "1.00 Gbit/s");
        assert_eq!(rate_words(12_345_678.0), "12.3 Mbit/s");
        assert_eq!(seconds_words(0.25), "250 ms");
        assert_eq!(seconds_words(0.000_25), "250 us");
        assert_eq!(seconds_words(61.0), "61 s");
        assert_eq!(seconds_words(150.0), "2 min 30 s");
    }
}
