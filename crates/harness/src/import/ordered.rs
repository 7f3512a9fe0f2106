//! Sources in which one rule overrides another: the one with the higher rank counts alone.
//!
//! Here the strictest rule counts. So a rule that denies or asks keeps out of its way what a looser rule of a higher
//! rank matches: those are its exceptions. Ranks that are the same override nothing.

use super::text::Wild;
use super::{Carried, Draft, ImportError, Place, command_rule, pattern_of};
use cmdgate_policy::{Effect, Pattern};

/// More rules than this override each other in too many ways to write them all down.
const MOST: usize = 1000;

/// A rule over the text of commands.
pub(super) struct Ranked<'f> {
    pub(super) place: Place<'f>,
    pub(super) effect: Effect,
    /// It matches what any of these does.
    pub(super) wilds: Vec<Wild>,
    pub(super) rank: u64,
    /// Which of two rules of different folders counts is not known, unless one is in the first, 0.
    pub(super) folder: usize,
    /// What it does not allow, whatever it matches.
    pub(super) except: &'static [&'static str],
    /// It allows nothing itself; it only overrides.
    pub(super) spares_only: bool,
    /// The author's own words.
    pub(super) reason: Option<String>,
    /// With this syntax in the line, what it allows is asked about.
    pub(super) asks_with: &'static [&'static str],
    /// Why it says more here than in its source, or allows less.
    pub(super) stricter: Option<&'static str>,
}

pub(super) fn carry(
    rules: &[Ranked<'_>],
    why_asks: &'static str,
    draft: &mut Draft,
) -> Result<(), ImportError> {
    for (at, rule) in rules.iter().enumerate() {
        if at >= MOST {
            let what = format!("there are more than {MOST} rules that override each other");
            return Err(ImportError::new(rule.place.file, rule.place.line, what));
        }
        match rule.effect {
            Effect::Allow if rule.spares_only => {
                draft.leave(&rule.place, "it is for one agent only, and those are not told apart here")?;
            }
            Effect::Allow => allow(rule, why_asks, draft)?,
            Effect::Ask | Effect::Deny => tighten(rule, rules, draft)?,
        }
    }
    Ok(())
}

fn allow(rule: &Ranked<'_>, why_asks: &'static str, draft: &mut Draft) -> Result<(), ImportError> {
    let (mut carried, mut problem, mut exact) = (Vec::new(), None, true);
    for wild in &rule.wilds {
        let made = wild.for_allowing().and_then(|translated| {
            exact &= translated.exact;
            translated
                .patterns
                .iter()
                .map(|pattern| command_rule(Effect::Allow, pattern))
                .collect::<Result<Vec<_>, _>>()
        });
        match made {
            Ok(rules) => carried.extend(rules),
            Err(why) => problem = Some(why),
        }
    }
    for one in &mut carried {
        one.reason.clone_from(&rule.reason);
        one.except = rule.except.iter().map(|text| Pattern::lenient(*text)).collect();
    }
    let patterns: Vec<String> = carried.iter().map(|rule| rule.pattern.as_str().to_owned()).collect();
    match (carried.is_empty(), problem) {
        (true, problem) => {
            draft.leave(&rule.place, &problem.unwrap_or_else(|| "it matches nothing".to_owned()))?;
        }
        (false, Some(problem)) => {
            draft.carry(&rule.place, Carried::Stricter, &format!("in part: {problem}"), carried)?;
        }
        (false, None) if let Some(why) = rule.stricter => {
            draft.carry(&rule.place, Carried::Stricter, why, carried)?;
        }
        (false, None) if exact => draft.carry(&rule.place, Carried::Exactly, "", carried)?,
        (false, None) => {
            let why = "without anything in place of the last wildcard it is asked about";
            draft.carry(&rule.place, Carried::Stricter, why, carried)?;
        }
    }
    for pattern in patterns {
        draft.ask_with_syntax_of(&pattern, rule.asks_with, why_asks);
    }
    Ok(())
}

fn tighten(rule: &Ranked<'_>, all: &[Ranked<'_>], draft: &mut Draft) -> Result<(), ImportError> {
    let translated: Vec<_> = rule.wilds.iter().map(Wild::for_tightening).collect();
    let mut exact = translated.iter().all(|translated| translated.exact);
    let mut why = if exact { "" } else { "what the shell reads in its own way stands for anything here" };
    let mut except: Vec<Pattern> = Vec::new();
    let overriding = all.iter().filter(|other| {
        other.rank > rule.rank
            && other.effect < rule.effect
            && (other.folder == rule.folder || other.folder == 0)
            && (!other.spares_only || rule.spares_only)
    });
    for wild in
        overriding.flat_map(|other| &other.wilds).filter(|wild| rule.wilds.iter().any(|own| meets(own, wild)))
    {
        if wild.is_everything() {
            return draft.leave(&rule.place, "a rule that counts more decides about all it matches");
        }
        let spared = wild.for_allowing().and_then(|spared| {
            let exact = spared.exact;
            Ok((spared.patterns.iter().map(|text| pattern_of(text)).collect::<Result<Vec<_>, _>>()?, exact))
        });
        match spared {
            Ok((patterns, all_of_it)) => {
                except.extend(patterns);
                exact &= all_of_it;
            }
            Err(_) => exact = false,
        }
        if !exact && why.is_empty() {
            why = "a rule that counts more takes out less than it did";
        }
    }
    let mut rules = Vec::new();
    for pattern in translated.iter().flat_map(|translated| &translated.patterns) {
        let Ok(made) = command_rule(rule.effect, pattern) else {
            // What cannot be written down holds for everything.
            rules = command_rule(rule.effect, "*").into_iter().collect();
            (exact, why) = (false, "its text is too long, so it holds for every command");
            break;
        };
        let mut made = made.words();
        made.except.clone_from(&except);
        made.reason.clone_from(&rule.reason);
        rules.push(made);
    }
    if let (true, Some(stricter)) = (exact, rule.stricter) {
        (exact, why) = (false, stricter);
    }
    if exact && rule.wilds.iter().any(|wild| wild.beyond_words().is_some()) {
        (exact, why) = (false, super::BEYOND);
    }
    draft.carry(&rule.place, if exact { Carried::Exactly } else { Carried::Stricter }, why, rules)?;
    for wild in &rule.wilds {
        draft.ask_beyond_words(wild);
    }
    Ok(())
}

/// Whether one command may match both: not where both name a program, and not the same.
fn meets(one: &Wild, other: &Wild) -> bool {
    match (one.program(), other.program()) {
        (Some(one), Some(other)) => one == other,
        (Some(_) | None, None) | (None, Some(_)) => true,
    }
}
