//! The ratchet: the figures may only improve.

use super::{Expect, Figure, Report};
use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The figures as they were last recorded.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Ratchet(BTreeMap<String, Entry>);

/// One recorded figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    rows: usize,
    misses: usize,
}

/// A figure that differs from the recorded one.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "change", rename_all = "snake_case")]
pub enum Change {
    /// More misses than recorded.
    Worse {
        /// The figure.
        figure: String,
        /// Misses recorded.
        was: usize,
        /// Misses now.
        now: usize,
    },
    /// Fewer misses than recorded.
    Better {
        /// The figure.
        figure: String,
        /// Misses recorded.
        was: usize,
        /// Misses now.
        now: usize,
    },
    /// The set has other rows than those that were recorded.
    OtherRows {
        /// The figure.
        figure: String,
    },
}

impl Change {
    /// Whether the audit fails for it.
    pub const fn fails(&self) -> bool {
        match self {
            Self::Worse { .. } | Self::OtherRows { .. } => true,
            Self::Better { .. } => false,
        }
    }
}

const HEAD: &str = "\
# How many rows of each figure miss; fewer may be recorded, more fail the build.
# Written by `cargo xtask audit cases --bless`.

";

impl Ratchet {
    /// The recorded figures.
    ///
    /// # Errors
    ///
    /// When the file is there and is not a ratchet.
    pub fn load() -> Result<Self> {
        let path = path();
        match std::fs::read_to_string(&path) {
            Ok(text) => toml::from_str(&text).with_context(|| path.display().to_string()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error).with_context(|| path.display().to_string()),
        }
    }

    /// What `report` would record. Figures of sets that are absent keep their record.
    pub fn of(report: &Report) -> Self {
        let mut entries = Self::load().unwrap_or_default().0;
        entries.retain(|name, _| {
            report.absent.iter().any(|set| name.starts_with(set.as_str()))
                || !report.figures.values().any(|figure| name.starts_with(figure.set.as_str()))
        });
        let held = report.figures.iter().filter(|(_, figure)| figure.expect != Expect::Nothing);
        entries.extend(held.map(|(name, Figure { rows, misses, .. })| {
            (name.clone(), Entry { rows: *rows, misses: *misses })
        }));
        Self(entries)
    }

    /// Writes the file.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub fn save(&self) -> Result<()> {
        let mut text = String::from(HEAD);
        for (name, entry) in &self.0 {
            use std::fmt::Write as _;
            writeln!(text, "\"{name}\" = {{ rows = {}, misses = {} }}", entry.rows, entry.misses)?;
        }
        let path = path();
        std::fs::write(&path, text).with_context(|| path.display().to_string())
    }

    /// What differs. Nothing does when the sets are not the project's own.
    pub fn compare(&self, report: &Report) -> Vec<Change> {
        if !report.own {
            return Vec::new();
        }
        let held = report.figures.iter().filter(|(_, figure)| figure.expect != Expect::Nothing);
        held.filter_map(|(name, figure)| {
            let figure_name = name.clone();
            match self.0.get(name) {
                Some(entry) if entry.rows == figure.rows => {
                    let (was, now) = (entry.misses, figure.misses);
                    match now.cmp(&was) {
                        std::cmp::Ordering::Less => Some(Change::Better { figure: figure_name, was, now }),
                        std::cmp::Ordering::Equal => None,
                        std::cmp::Ordering::Greater => Some(Change::Worse { figure: figure_name, was, now }),
                    }
                }
                Some(_) | None => Some(Change::OtherRows { figure: figure_name }),
            }
        })
        .collect()
    }
}

fn path() -> PathBuf {
    crate::audit::workspace().join("tests/data/ratchet.toml")
}
