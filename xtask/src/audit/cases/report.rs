//! Prints the audit.

use super::{Change, Expect, Figure, Miss, Report};
use anyhow::Result;
use std::collections::BTreeMap;
use std::io::Write;

/// Prints figures, lines that miss unless `quiet`, and the changes against the ratchet.
///
/// # Errors
///
/// When standard output cannot be written.
pub fn print(report: &Report, changes: &[Change], quiet: bool, json: bool) -> Result<()> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    if json {
        let value = serde_json::json!({
            "figures": report.figures,
            "misses": report.misses,
            "argued": report.argued,
            "absent": report.absent,
            "changes": changes,
        });
        serde_json::to_writer_pretty(&mut out, &value)?;
        writeln!(out)?;
        return Ok(());
    }
    if !quiet {
        for miss in &report.misses {
            line(&mut out, "", miss)?;
        }
        for safe in &report.argued {
            line(&mut out, "argued: ", safe)?;
        }
        if !report.misses.is_empty() || !report.argued.is_empty() {
            writeln!(out)?;
        }
        reasons(&mut out, &report.misses)?;
    }
    figures(&mut out, &report.figures)?;
    for set in &report.absent {
        writeln!(out, "{}: not there, not judged", set.as_str())?;
    }
    if !changes.is_empty() {
        writeln!(out)?;
    }
    for change in changes {
        match change {
            Change::Worse { figure, was, now } => {
                writeln!(out, "worse: {figure} has {now} misses, {was} recorded")?;
            }
            Change::Better { figure, was, now } => {
                writeln!(out, "better: {figure} has {now} misses, {was} recorded: run with --bless")?;
            }
            Change::OtherRows { figure } => {
                writeln!(out, "other rows: {figure} is not as recorded: look, then run with --bless")?;
            }
        }
    }
    out.flush()?;
    Ok(())
}

fn line(out: &mut impl Write, mark: &str, miss: &Miss) -> Result<()> {
    let what = match miss.expect {
        Expect::Review | Expect::Neutralised if mark.is_empty() => "FALSE SAFE",
        Expect::Review | Expect::Neutralised => "safe",
        Expect::Safe | Expect::Nothing => "review",
    };
    writeln!(out, "{mark}{what} {} {}: {:?}", miss.figure, miss.id, miss.command)?;
    if !miss.note.is_empty() {
        writeln!(out, "    because {}", miss.note)?;
    }
    if miss.expect != Expect::Safe {
        writeln!(out, "    conditions: {}", miss.conditions.join(", "))?;
    }
    for reason in &miss.findings {
        writeln!(out, "    {} at {:?}: {}", reason.code, reason.text, reason.message)?;
    }
    Ok(())
}

/// The first findings of needless reviews, counted: what to work on next.
fn reasons(out: &mut impl Write, misses: &[Miss]) -> Result<()> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for miss in misses.iter().filter(|miss| miss.expect == Expect::Safe) {
        if let Some(reason) = miss.findings.first() {
            let text: String = reason.text.chars().take(32).collect();
            *counts.entry(format!("{} {} {text:?}", reason.code, reason.program)).or_default() += 1;
        }
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    if counts.is_empty() {
        return Ok(());
    }
    writeln!(out, "first finding of needless reviews, the most frequent ones:")?;
    for (reason, count) in counts.iter().take(40) {
        writeln!(out, "{count:6}  {reason}")?;
    }
    writeln!(out)?;
    Ok(())
}

fn figures(out: &mut impl Write, figures: &BTreeMap<String, Figure>) -> Result<()> {
    writeln!(
        out,
        "{:<17} {:<40} {:<8} {:>5} {:>5} {:>6} {:>7}  goal",
        "set", "part", "grammar", "rows", "safe", "misses", "safe %"
    )?;
    for figure in figures.values() {
        #[expect(clippy::cast_precision_loss, reason = "a percentage for reading")]
        let share = figure.safe as f64 * 100.0 / figure.rows as f64;
        let goal = match (figure.expect, figure.goal) {
            (Expect::Nothing, _) | (_, None) => "-".to_owned(),
            (Expect::Safe, Some(percent)) => format!("at least {} % safe", 100 - percent),
            (Expect::Review, Some(_)) => "none safe".to_owned(),
            (Expect::Neutralised, Some(_)) => "none safe without its condition".to_owned(),
        };
        let mark = match figure.goal {
            None => "",
            Some(_) if figure.meets_goal() => " (met)",
            Some(_) => " (MISSED)",
        };
        writeln!(
            out,
            "{:<17} {:<40} {:<8} {:>5} {:>5} {:>6} {share:>7.1}  {goal}{mark}",
            figure.set.as_str(),
            figure.part,
            figure.grammar,
            figure.rows,
            figure.safe,
            figure.misses
        )?;
    }
    Ok(())
}
