//! Runs every case file: `cases/<program>.case`, one command a line with the verdict that a person wrote before it.
//!
//! ```text
//! # a comment
//! safe sort -n a.txt
//! review flag_writes sort -ro out.txt a.txt
//! review - frobnicate
//! pipeline: review path_parent cat sub/../a.txt
//! needs reads_confined: safe cat $(git ls-files)
//! ```
//!
//! The code of a `review` line must be among the codes found; `-` leaves the code open. The grammar is `sequence`
//! unless the line begins with `pipeline: `. In a command `\n` stands for a newline, `\t` for a tab and `\\` for a
//! backslash when the line begins with `escaped: `. A line that begins with `needs reads_confined git_hardened: ` says the
//! conditions of the verdict, all of them but those that most commands have ([`USUAL`]). The project root is `/home/user/project`, which is the working
//! directory as well.

use cmdgate_classifier::{Code, Condition, Conditions, Context, Grammar, Verdict, classify};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

const ROOT: &str = "/home/user/project";

/// The conditions that a line with `needs` does not name.
const USUAL: Conditions = Conditions::NONE
    .with(Condition::CleanEnvironment)
    .with(Condition::NullStdin)
    .with(Condition::PathsResolveInside);

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("cases")
}

fn files() -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(directory())
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "case"))
        .collect();
    files.sort();
    files
}

/// What the line says.
#[derive(Debug, Clone, Copy)]
enum Expected {
    Safe,
    /// Held back, for this code among others if one is named.
    Review(Option<Code>),
}

#[derive(Debug)]
struct Case {
    grammar: Grammar,
    expected: Expected,
    /// The conditions, where the line names them.
    needs: Option<Conditions>,
    command: String,
}

/// Reads one line; `Ok(None)` for a blank line or comment, `Err` with what is wrong with it.
fn parse(line: &str) -> Result<Option<Case>, String> {
    if line.trim().is_empty() || line.starts_with('#') {
        return Ok(None);
    }
    let (mut line, mut grammar, mut escaped, mut needs) = (line, Grammar::Sequence, false, None);
    loop {
        if let Some(rest) = line.strip_prefix("pipeline: ") {
            (line, grammar) = (rest, Grammar::Pipeline);
        } else if let Some(rest) = line.strip_prefix("escaped: ") {
            (line, escaped) = (rest, true);
        } else if let Some(rest) = line.strip_prefix("needs ") {
            let (names, rest) = rest.split_once(": ").ok_or("needs `: ` behind the conditions")?;
            let mut conditions = Conditions::NONE;
            for name in names.split(' ').filter(|name| *name != "nothing") {
                let known = Condition::ALL.iter().copied().find(|known| known.as_str() == name);
                conditions = conditions.with(known.ok_or_else(|| format!("`{name}` is not a condition"))?);
            }
            (line, needs) = (rest, Some(conditions));
        } else {
            break;
        }
    }
    let (verdict, rest) = line.split_once(' ').ok_or("needs a verdict and a command")?;
    let (expected, command) = match verdict {
        "safe" => (Expected::Safe, rest),
        "review" => {
            let (code, command) = rest.split_once(' ').ok_or("needs a code, or `-`, and a command")?;
            let code = if code == "-" {
                None
            } else {
                let known = Code::ALL.iter().copied().find(|known| known.as_str() == code);
                Some(known.ok_or_else(|| format!("`{code}` is not a reason code"))?)
            };
            (Expected::Review(code), command)
        }
        other => return Err(format!("`{other}` is not a verdict")),
    };
    let command = if escaped {
        let mut text = String::new();
        let mut chars = command.chars();
        while let Some(c) = chars.next() {
            match (c, if c == '\\' { chars.next() } else { None }) {
                ('\\', Some('n')) => text.push('\n'),
                ('\\', Some('t')) => text.push('\t'),
                ('\\', Some('\\')) => text.push('\\'),
                ('\\', other) => return Err(format!("`\\{}` is not an escape", other.unwrap_or(' '))),
                (c, _) => text.push(c),
            }
        }
        text
    } else {
        command.to_owned()
    };
    Ok(Some(Case { grammar, expected, needs, command }))
}

#[test]
fn every_case_gets_the_verdict_that_was_written_for_it() {
    // contract: S4, S12, X1
    let mut failures = String::new();
    let (mut run, mut failed) = (0, 0);
    for file in files() {
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&file).expect("a case file is UTF-8");
        for (number, line) in text.lines().enumerate() {
            let place = format!("{name}:{}", number + 1);
            let case = match parse(line) {
                Ok(None) => continue,
                Ok(Some(case)) => case,
                Err(why) => panic!("{place}: {why}: {line}"),
            };
            run += 1;
            let context = Context::new(case.grammar).with_root(ROOT);
            let got = classify(&case.command, &context);
            let codes: Vec<&str> = got.findings.iter().map(|finding| finding.code.as_str()).collect();
            let wrong = match (case.expected, got.verdict()) {
                (Expected::Safe, Verdict::NeedsReview) => {
                    let mut found = String::from("is held back:");
                    for finding in &got.findings {
                        let at = finding.span.of(&case.command);
                        let _ = write!(found, " [{} at `{at}`: {}]", finding.code.as_str(), finding.message);
                    }
                    found
                }
                (Expected::Review(_), Verdict::Safe) => "is called SAFE and must not be".to_owned(),
                (Expected::Review(Some(code)), Verdict::NeedsReview) if !codes.contains(&code.as_str()) => {
                    format!("is held back, but for {codes:?} instead of {}", code.as_str())
                }
                (Expected::Safe, Verdict::Safe) | (Expected::Review(_), Verdict::NeedsReview) => {
                    let unusual = got.conditions.without(USUAL);
                    if case.needs.is_none_or(|needs| needs == unusual) {
                        continue;
                    }
                    format!("needs {unusual:?}")
                }
            };
            failed += 1;
            let _ = writeln!(failures, "{place}: `{}` {wrong}", case.command);
        }
    }
    assert!(run > 0, "there are no cases in {}", directory().display());
    assert!(failed == 0, "{failed} of {run} cases differ:\n{failures}");
}

#[test]
fn no_case_stands_twice_in_a_file() {
    for file in files() {
        let text = std::fs::read_to_string(&file).unwrap();
        let mut seen = std::collections::BTreeMap::new();
        for (number, line) in text.lines().enumerate() {
            if let Ok(Some(case)) = parse(line)
                && let Some(before) =
                    seen.insert((format!("{:?}", case.grammar), case.command.clone()), number + 1)
            {
                panic!("{}:{}: `{}` stands at line {before} too", file.display(), number + 1, case.command);
            }
        }
    }
}

#[test]
fn a_malformed_line_is_told_apart_from_a_comment() {
    assert!(parse("").unwrap().is_none());
    assert!(parse("# x").unwrap().is_none());
    assert!(parse("sure ls").is_err());
    assert!(parse("safe").is_err());
    assert!(parse("review ls").is_err());
    assert!(parse("review no_such_code ls").is_err());
    let case = parse(r"escaped: pipeline: review - a\nb").unwrap().unwrap();
    assert_eq!(case.command, "a\nb");
    assert_eq!(case.grammar, Grammar::Pipeline);
}
