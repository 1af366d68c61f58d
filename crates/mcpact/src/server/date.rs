//! ISO 8601 timestamps.

use std::time::{SystemTime, UNIX_EPOCH};

/// Returns the current time in ISO 8601.
#[must_use]
pub fn now() -> String {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    format(since.as_secs(), since.subsec_millis())
}

/// Formats seconds since 1970; the calendar repeats every 400 years, which are 146,097 days.
fn format(seconds: u64, millis: u32) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Counted from 1 March of the year 0, so that the leap day is the last day of a year.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

#[cfg(test)]
mod tests {
    use super::format;

    #[test]
    fn dates_are_written_as_iso_8601() {
        assert_eq!(format(0, 0), "1970-01-01T00:00:00.000Z");
        assert_eq!(format(951_782_399, 5), "2000-02-28T23:59:59.005Z");
        assert_eq!(format(951_782_400, 0), "2000-02-29T00:00:00.000Z");
        assert_eq!(format(1_785_196_800, 0), "2026-07-28T00:00:00.000Z");
    }
}
