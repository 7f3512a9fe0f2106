//! Finding the few rules that can match a target among many thousands.
//!
//! Every pattern that is not plain text or all wildcards has literal stretches that each matching text
//! contains. One automaton looks for one stretch of every pattern, the one that the fewest other patterns
//! share; only where it turns up is the pattern itself tried. Plain texts are looked up in a table. The
//! search runs on case-folded text, the trial decides about case.

use crate::act::{Act, Effect};
use crate::glob::{Token, fold};
use crate::instant::Timestamp;
use crate::layer::Layer;
use crate::pattern::Compiled;
use crate::rule::Rule;
use crate::ruling::MatchedOn;
use crate::target::{Form, Forms, Spaces};
use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;

/// From how many stretches on it pays to build an automaton: below, trying every pattern takes a few microseconds, and
/// a process that checks one command does not wait for it.
const WORTH_AN_AUTOMATON: usize = 64;

/// The longest stretch the automaton looks for, in bytes: longer ones cost memory and tell little more.
const MAX_STRETCH: usize = 32;

/// The rules of a stack of layers, those of each act compiled when that act is first asked about: most commands ask about
/// one or two.
#[derive(Debug, Default)]
pub(crate) struct Index {
    acts: [OnceLock<ActIndex>; 4],
    /// The folded names of programs that run inside the sandbox or not at all.
    only_in_sandbox: OnceLock<HashSet<Box<str>>>,
}

/// An index with the layers that it is for; they are always the same.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Indexed<'p> {
    pub(crate) index: &'p Index,
    pub(crate) layers: &'p [Layer],
}

#[derive(Debug, Default)]
struct ActIndex {
    /// In the order of layers and rules, so that the lowest of several is the one to name.
    entries: Vec<Entry>,
    /// By folded text: the patterns that match only that.
    exact: HashMap<Box<str>, Vec<u32>>,
    finder: Option<AhoCorasick>,
    /// For each stretch of `finder`, the entries that contain it.
    by_stretch: Vec<Vec<u32>>,
    /// Entries without any literal stretch.
    always: Vec<u32>,
}

#[derive(Debug)]
struct Entry {
    layer: u32,
    rule: u32,
    effect: Effect,
    /// Counts only where it makes the answer stricter.
    tighten_only: bool,
    /// Counts only for spellings of the whole target.
    whole: bool,
    /// Spaces of the pattern stand between words.
    words: bool,
    expires: Option<Timestamp>,
    compiled: Compiled,
    except: Box<[Compiled]>,
}

/// A rule that matched.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hit {
    entry: u32,
    pub(crate) layer: usize,
    pub(crate) rule: usize,
    pub(crate) form: usize,
}

/// The rules to name for each way that a target can be answered.
#[derive(Debug, Default)]
pub(crate) struct Hits {
    pub(crate) deny: Option<Hit>,
    pub(crate) ask: Option<Hit>,
    pub(crate) allow: Option<Hit>,
    /// An ask that may turn an allow into an ask, and may not turn a deny into one.
    pub(crate) tightening_ask: Option<Hit>,
}

impl<'p> Indexed<'p> {
    /// Whether a program, by any of its spellings, runs inside the sandbox or not at all.
    pub(crate) fn is_only_in_sandbox(self, forms: &Forms<'_>) -> bool {
        let names = self.index.only_in_sandbox.get_or_init(|| {
            let programs = self.layers.iter().flat_map(|layer| &layer.programs);
            let confined = programs.filter(|program| program.only_in_sandbox);
            confined.map(|program| fold(&program.name).into()).collect()
        });
        // Most policies have none.
        !names.is_empty()
            && forms.all().iter().any(|form| match form.on {
                MatchedOn::Program | MatchedOn::Basename => names.contains(&*form.scan),
                // A command without arguments goes by one spelling only.
                MatchedOn::Command => !form.scan.contains(' ') && names.contains(&*form.scan),
                MatchedOn::Target | MatchedOn::Host => false,
            })
    }

    fn act(self, act: Act) -> &'p ActIndex {
        let [read, write, exec, net] = &self.index.acts;
        let cell = match act {
            Act::Read => read,
            Act::Write => write,
            Act::Exec => exec,
            Act::Net => net,
        };
        cell.get_or_init(|| ActIndex::new(act, self.layers))
    }

    /// Compiles the rules of every act.
    pub(crate) fn compile(self) {
        for act in Act::ALL {
            self.act(act);
        }
    }

    /// The rules to name. Without a time, a rule that ends may only tighten: it may have ended already.
    pub(crate) fn look_up(self, act: Act, forms: &Forms<'_>, now: Option<Timestamp>) -> Hits {
        let index = self.act(act);
        let mut hits = Hits::default();
        for (position, form) in forms.all().iter().enumerate() {
            index.candidates(&form.scan, |id| {
                let Some(entry) = index.entries.get(id as usize) else {
                    return;
                };
                // Once something is denied, only an earlier deny is worth a look.
                if hits.deny.is_some_and(|deny| entry.effect != Effect::Deny || deny.entry <= id) {
                    return;
                }
                let Some(firm) = entry.matches(form, now) else {
                    return;
                };
                let slot = match entry.effect {
                    Effect::Deny => &mut hits.deny,
                    Effect::Ask if firm => &mut hits.ask,
                    Effect::Ask => &mut hits.tightening_ask,
                    Effect::Allow if firm => &mut hits.allow,
                    Effect::Allow => return,
                };
                if slot.is_none_or(|known| id < known.entry) {
                    let (layer, rule) = (entry.layer as usize, entry.rule as usize);
                    *slot = Some(Hit { entry: id, layer, rule, form: position });
                }
            });
        }
        hits
    }

    /// The places of the rules that may match everything that these token lists do: what a covering pattern
    /// says literally, the covered one says literally.
    pub(crate) fn may_cover(self, act: Act, lists: &[Vec<Token>]) -> Vec<(usize, usize)> {
        let index = self.act(act);
        let mut places = Vec::new();
        for tokens in lists {
            for tokens in
                [Some(tokens.as_slice()), crate::lint::named_part(act, tokens)].into_iter().flatten()
            {
                let text: String = tokens
                    .iter()
                    .map(|token| match token {
                        Token::Char(character) => *character,
                        // No pattern holds a NUL.
                        Token::AnyChar | Token::Class(_) | Token::Star | Token::StarStar => '\0',
                    })
                    .collect();
                index.candidates(&fold(&text), |id| {
                    places.extend(
                        index
                            .entries
                            .get(id as usize)
                            .map(|entry| (entry.layer as usize, entry.rule as usize)),
                    );
                });
            }
        }
        places.sort_unstable();
        places.dedup();
        places
    }

    /// Every rule that matches, in order, once each.
    pub(crate) fn all(self, act: Act, forms: &Forms<'_>, now: Option<Timestamp>) -> Vec<Hit> {
        let index = self.act(act);
        let mut hits: Vec<Hit> = Vec::new();
        for (position, form) in forms.all().iter().enumerate() {
            index.candidates(&form.scan, |id| {
                let Some(entry) = index.entries.get(id as usize) else {
                    return;
                };
                if entry.matches(form, now).is_some_and(|firm| firm || entry.effect != Effect::Allow) {
                    let (layer, rule) = (entry.layer as usize, entry.rule as usize);
                    hits.push(Hit { entry: id, layer, rule, form: position });
                }
            });
        }
        hits.sort_by_key(|hit| (hit.layer, hit.rule, hit.form));
        hits.dedup_by_key(|hit| (hit.layer, hit.rule));
        hits
    }
}

/// A rule, alone and unexpired.
#[derive(Debug)]
pub(crate) struct Alone {
    act: Act,
    effect: Effect,
    entries: Vec<Entry>,
}

impl Alone {
    pub(crate) fn new(rule: &Rule) -> Self {
        let layer = Layer::default();
        let mut entries = Entry::new(&layer, rule, (0, 0));
        for entry in &mut entries {
            entry.expires = None;
        }
        Self { act: rule.act, effect: rule.effect, entries }
    }

    /// Whether it speaks about a target.
    pub(crate) fn matches(&self, target: &str) -> bool {
        Forms::of(self.act, target).all().iter().any(|form| {
            let firmness = self.entries.iter().find_map(|entry| entry.matches(form, None));
            firmness.is_some_and(|firm| firm || self.effect != Effect::Allow)
        })
    }
}

impl Entry {
    fn new(layer: &Layer, rule: &Rule, place: (u32, u32)) -> Vec<Self> {
        let broken = rule.problem().is_some();
        if rule.effect == Effect::Allow && (layer.tighten_only || broken) {
            return Vec::new();
        }
        // A rule that cannot be read covers all of its act: nobody knows what it was to hold back.
        let (globs, except) = if broken {
            (crate::Pattern::lenient("*").compile(rule.act), Vec::new())
        } else {
            let except = rule.except.iter().flat_map(|pattern| pattern.compile(rule.act)).collect();
            (rule.pattern.compile(rule.act), except)
        };
        let entry = |compiled| Self {
            layer: place.0,
            rule: place.1,
            effect: rule.effect,
            tighten_only: layer.tighten_only || broken,
            whole: rule.whole && !broken,
            words: rule.words,
            expires: rule.expires,
            compiled,
            except: except.clone().into(),
        };
        globs.into_iter().map(entry).collect()
    }

    /// Whether the rule speaks about this spelling, and if so whether firmly: only what is firm may loosen.
    fn matches(&self, spelling: &Form<'_>, now: Option<Timestamp>) -> Option<bool> {
        let partial = matches!(spelling.on, MatchedOn::Program | MatchedOn::Basename);
        if (self.whole && partial) || !self.compiled.admits(spelling.on) {
            return None;
        }
        let by_words = self.words && self.effect == Effect::Allow;
        match (by_words, spelling.spaces) {
            (true, Spaces::Blurred) | (false, Spaces::Marked) => return None,
            (_, Spaces::Between) | (true, Spaces::Marked) | (false, Spaces::Blurred) => {}
        }
        let mut firm = !self.tighten_only && !spelling.loose;
        match (self.expires, now) {
            (Some(end), Some(now)) if now >= end => return None,
            (Some(_), None) => firm = false,
            (Some(_) | None, Some(_)) | (None, None) => {}
        }
        if !self.compiled.glob.matches(&spelling.text) {
            firm = false;
            if !self.compiled.matches_folded(&spelling.folded) {
                return None;
            }
        }
        let reading = match (self.words && !by_words, spelling.spaces, &spelling.marked) {
            (true, Spaces::Blurred, None) => return Some(firm),
            (true, Spaces::Blurred, Some(marked)) => marked.as_str(),
            (_, Spaces::Between | Spaces::Marked | Spaces::Blurred, _) => &spelling.text,
        };
        let spared = self.except.iter().any(|except| {
            // An exception narrows: generously from an allow, and only to the letter from the others.
            except.admits(spelling.on)
                && (except.glob.matches(reading)
                    || self.effect == Effect::Allow && except.matches_folded(&spelling.folded))
        });
        (!spared).then_some(firm)
    }
}

impl ActIndex {
    fn new(act: Act, layers: &[Layer]) -> Self {
        let mut index = Self::default();
        for (layer_number, layer) in (0_u32..).zip(layers) {
            let implied = layer.implied_rules();
            for (rule_number, rule) in (0_u32..).zip(layer.rules.iter().chain(&implied)) {
                if rule.act == act {
                    index.entries.extend(Entry::new(layer, rule, (layer_number, rule_number)));
                }
            }
        }
        index.build();
        index
    }

    fn build(&mut self) {
        if self.entries.len() < WORTH_AN_AUTOMATON {
            self.always = (0_u32..).zip(&self.entries).map(|(id, _)| id).collect();
            return;
        }
        let mut shared: HashMap<Box<str>, u32> = HashMap::new();
        let mut stretches_of: Vec<(u32, Vec<Box<str>>)> = Vec::new();
        for (id, entry) in (0_u32..).zip(&self.entries) {
            if let Some(text) = entry.compiled.glob.exact() {
                self.exact.entry(fold(text).into()).or_default().push(id);
                continue;
            }
            let mut stretches: Vec<Box<str>> = Vec::new();
            for part in entry.compiled.glob.literal_parts() {
                let part = fold(&part);
                stretches.push(first_bytes(&part).into());
                if part.len() > MAX_STRETCH {
                    stretches.push(last_bytes(&part).into());
                }
            }
            stretches.sort();
            stretches.dedup();
            for stretch in &stretches {
                *shared.entry(stretch.clone()).or_default() += 1;
            }
            stretches_of.push((id, stretches));
        }
        let mut numbers: HashMap<Box<str>, usize> = HashMap::new();
        let mut wanted: Vec<Box<str>> = Vec::new();
        for (id, stretches) in stretches_of {
            let rarest = stretches.into_iter().min_by_key(|stretch| {
                (shared.get(stretch).copied().unwrap_or_default(), std::cmp::Reverse(stretch.len()))
            });
            let Some(stretch) = rarest else {
                self.always.push(id);
                continue;
            };
            let number = *numbers.entry(stretch).or_insert_with_key(|stretch| {
                wanted.push(stretch.clone());
                self.by_stretch.push(Vec::new());
                wanted.len() - 1
            });
            if let Some(ids) = self.by_stretch.get_mut(number) {
                ids.push(id);
            }
        }
        if wanted.len() < WORTH_AN_AUTOMATON {
            self.try_all();
            return;
        }
        let built = AhoCorasick::builder()
            .match_kind(MatchKind::Standard)
            .kind(Some(AhoCorasickKind::ContiguousNFA))
            .build(wanted.iter().map(|stretch| stretch.as_bytes()));
        match built {
            Ok(finder) => self.finder = Some(finder),
            // Too many patterns for the automaton: slower, and nothing is missed.
            Err(_) => self.try_all(),
        }
    }

    fn try_all(&mut self) {
        self.always.extend(std::mem::take(&mut self.by_stretch).into_iter().flatten());
        self.always.sort_unstable();
    }

    fn candidates(&self, text: &str, mut visit: impl FnMut(u32)) {
        for &id in self.exact.get(text).into_iter().flatten() {
            visit(id);
        }
        for &id in &self.always {
            visit(id);
        }
        if let Some(finder) = &self.finder {
            for found in finder.find_overlapping_iter(text) {
                for &id in self.by_stretch.get(found.pattern().as_usize()).into_iter().flatten() {
                    visit(id);
                }
            }
        }
    }
}

fn first_bytes(text: &str) -> &str {
    let end = (0..=MAX_STRETCH.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    text.get(..end).unwrap_or(text)
}

fn last_bytes(text: &str) -> &str {
    let start = text.len().saturating_sub(MAX_STRETCH);
    let start = (start..=text.len()).find(|start| text.is_char_boundary(*start)).unwrap_or(0);
    text.get(start..).unwrap_or(text)
}
