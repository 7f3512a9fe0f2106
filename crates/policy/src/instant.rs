//! Points in time as policy files write them. Nothing here reads a clock.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use toml::value::{Datetime, Offset};

/// A point in time with a resolution of one second, written as RFC 3339.
///
/// ```
/// use cmdgate_policy::Timestamp;
/// let end: Timestamp = "2027-01-01T02:00:00+02:00".parse().unwrap();
/// assert_eq!(end.to_string(), "2027-01-01T00:00:00Z");
/// assert!("2027-01-01T00:00:00".parse::<Timestamp>().is_err(), "no time zone: which moment would that be?");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Timestamp(i64);

/// Text that is no point in time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TimestampError {
    /// Not a date and a time.
    #[error("`{0}` is not a date with a time; write it like 2027-01-31T18:00:00Z")]
    Malformed(String),
    /// A date and a time, but the time zone is missing.
    #[error("`{0}` has no time zone; end it with Z or an offset like +02:00")]
    NoOffset(String),
}

impl Timestamp {
    /// Seconds since 1970-01-01T00:00:00Z, negative before it.
    pub const fn from_unix_seconds(seconds: i64) -> Self {
        Self(seconds)
    }

    /// Seconds since 1970-01-01T00:00:00Z, negative before it.
    pub const fn unix_seconds(self) -> i64 {
        self.0
    }

    fn from_datetime(value: &Datetime) -> Result<Self, TimestampError> {
        let malformed = || TimestampError::Malformed(value.to_string());
        let (date, time) = (value.date.ok_or_else(malformed)?, value.time.ok_or_else(malformed)?);
        let offset_minutes = match value.offset.ok_or_else(|| TimestampError::NoOffset(value.to_string()))? {
            Offset::Z => 0,
            Offset::Custom { minutes } => i64::from(minutes),
        };
        let days = days_from_civil(i64::from(date.year), i64::from(date.month), i64::from(date.day));
        let of_day =
            i64::from(time.hour) * 3600 + i64::from(time.minute) * 60 + i64::from(time.second.unwrap_or(0));
        Ok(Self(days * 86_400 + of_day - offset_minutes * 60))
    }
}

impl From<SystemTime> for Timestamp {
    fn from(time: SystemTime) -> Self {
        let seconds = |gap: Duration| i64::try_from(gap.as_secs()).unwrap_or(i64::MAX);
        match time.duration_since(UNIX_EPOCH) {
            Ok(after) => Self(seconds(after)),
            Err(before) => Self(-seconds(before.duration())),
        }
    }
}

impl std::str::FromStr for Timestamp {
    type Err = TimestampError;

    fn from_str(text: &str) -> Result<Self, TimestampError> {
        let value: Datetime = text.parse().map_err(|_| TimestampError::Malformed(text.to_owned()))?;
        Self::from_datetime(&value)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = civil_from_days(self.0.div_euclid(86_400));
        let of_day = self.0.rem_euclid(86_400);
        let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Moment::deserialize(deserializer)?.read().map_err(serde::de::Error::custom)
    }
}

/// A point in time as it is written, bare or in quotes: people do both.
#[derive(Debug, Deserialize, Serialize)]
#[serde(untagged, expecting = "expected a date with a time and a time zone, like 2027-01-31T18:00:00Z")]
pub(crate) enum Moment {
    Native(Datetime),
    Quoted(String),
}

impl Moment {
    pub(crate) fn read(&self) -> Result<Timestamp, TimestampError> {
        match self {
            Self::Native(value) => Timestamp::from_datetime(value),
            Self::Quoted(text) => text.parse(),
        }
    }
}

/// Days since 1970-01-01 of a date in the proleptic Gregorian calendar.
/// After Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms".
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// The inverse of [`days_from_civil`].
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_moments() {
        for (text, seconds) in [
            ("1970-01-01T00:00:00Z", 0),
            ("1969-12-31T23:59:59Z", -1),
            ("2000-02-29T12:00:00Z", 951_825_600),
            ("2038-01-19T03:14:08Z", 2_147_483_648),
        ] {
            let parsed: Timestamp = text.parse().unwrap();
            assert_eq!(parsed.unix_seconds(), seconds, "{text}");
            assert_eq!(parsed.to_string(), text);
        }
        assert!("2027-01-01".parse::<Timestamp>().is_err());
        assert!("soon".parse::<Timestamp>().is_err());
    }

    proptest! {
        #[test]
        fn writing_and_reading_back(seconds in 0i64..250_000_000_000) {
            let time = Timestamp::from_unix_seconds(seconds);
            prop_assert_eq!(time.to_string().parse::<Timestamp>().unwrap(), time);
        }
    }
}
