//! Walks a command line: lists, pipelines, directories, variables, and the commands in them.

use crate::arg::{Arg, Shape};
use crate::argv::{Reader, Surroundings, Tail};
use crate::commands;
use crate::condition::{Condition, Conditions};
use crate::effect::{PathUse, Run};
use crate::finding::{Code, Finding, Row};
use crate::paths::{Place, Project, join};
use crate::spec::Prints;
use crate::{Classification, Context};
use alloc::borrow::Cow;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use cmdgate_lexer::{
    Assignment, Command, Compound, CompoundKind, Connector, Grammar, List, Part, Pipeline, RedirectKind,
    Segment, Span, Word, WordValue, lex,
};

/// Wrapped commands (`timeout 5 nice xargs …`) deeper than this are held back.
const MOST_WRAPPERS: u8 = 8;
/// Findings beyond this many add nothing for a reader.
const MOST_FINDINGS: usize = 64;
/// A segment is judged for at most this many combinations of loop values.
const MOST_COMBINATIONS: usize = 256;
/// Effects beyond this many paths end in review, so that the answer stays bounded.
const MOST_EFFECTS: usize = 20_000;

/// Judges a command line that `bash -c` would get.
pub fn classify<'a>(command: &'a str, context: &Context<'a>) -> Classification<'a> {
    let mut judge = Judge::new(command, context);
    match lex(command, context.grammar) {
        Ok(script) => {
            judge.list(&script.list, Inherited::TOP);
        }
        Err(error) => judge.out.findings.push(error.into()),
    }
    judge.out
}

/// Judges an argument list that is run without a shell. Spans count in the words joined by single spaces.
pub fn classify_argv<'a>(argv: &[&'a str], context: &Context<'a>) -> Classification<'a> {
    let mut judge = Judge::new("", context);
    let mut at = 0_u32;
    let mut args = Vec::with_capacity(argv.len());
    for word in argv {
        let len = u32::try_from(word.len()).unwrap_or(u32::MAX);
        args.push(Arg::exact(*word, Span::new(at, at.saturating_add(len))));
        at = at.saturating_add(len).saturating_add(1);
    }
    if args.is_empty() {
        judge.report(Code::Empty, Span::new(0, 0), "there is no program to run", None);
    } else {
        judge.command(&args, Inherited::TOP.surroundings(false, Prints::Anything));
    }
    judge.out
}

/// What a command inherits from where it stands.
#[derive(Debug, Clone, Copy)]
struct Inherited {
    /// Standard input ends by itself.
    input_ends: bool,
    /// What the stage before prints.
    upstream: Prints,
}

impl Inherited {
    const TOP: Self = Self { input_ends: false, upstream: Prints::Anything };

    const fn surroundings(self, input_ends: bool, upstream: Prints) -> Surroundings {
        Surroundings { input_ends: self.input_ends || input_ends, upstream, tail: Tail::None, depth: 0 }
    }
}

/// The directories in which the next command may run: indices into [`crate::Effects::directories`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Places {
    ids: [u16; 4],
    len: u8,
}

impl Places {
    const START: Self = Self { ids: [0; 4], len: 1 };
    const NOWHERE: Self = Self { ids: [0; 4], len: 0 };

    fn iter(&self) -> impl Iterator<Item = u16> + use<> {
        let places = *self;
        places.ids.into_iter().take(usize::from(places.len))
    }

    /// Adds a directory; false when there is no room.
    fn add(&mut self, id: u16) -> bool {
        if self.iter().any(|known| known == id) {
            return true;
        }
        match self.ids.get_mut(usize::from(self.len)) {
            Some(slot) => {
                *slot = id;
                self.len += 1;
                true
            }
            None => false,
        }
    }

    /// Both sets; false when there is no room.
    fn add_all(&mut self, other: Self) -> bool {
        other.iter().all(|id| self.add(id))
    }
}

/// A variable that the script itself sets.
#[derive(Debug, Clone)]
struct Variable<'a> {
    name: &'a str,
    /// The value that is being judged now.
    current: Arg<'a>,
    /// All values it may have at this place; empty when there is only the current one.
    values: Vec<Arg<'a>>,
    /// Whether `current` is the one of `values` that is being judged. Otherwise its value here is not known.
    chosen: bool,
}

/// Collects findings, effects and conditions while a script is walked.
pub(crate) struct Judge<'a> {
    source: &'a str,
    grammar: Grammar,
    project: Project<'a>,
    pub(crate) out: Classification<'a>,
    places: Places,
    variables: Vec<Variable<'a>>,
    /// Whether something was reported of the command that is being read, those in its words not counted.
    pub(crate) held_back: bool,
    /// Whether patterns in words are expanded here; in assignments, `case` and `[[` they are not.
    expands: bool,
    /// Whether this shell may have skipped the rest of a line: an arithmetic expansion that fails does that.
    may_skip: bool,
}

impl<'a> Judge<'a> {
    fn new(source: &'a str, context: &Context<'a>) -> Self {
        let cwd = if context.root.is_some() { context.cwd } else { None };
        let mut judge = Self {
            source,
            grammar: context.grammar,
            project: Project { root: context.root, cwd, read_roots: context.read_roots },
            out: Classification::default(),
            places: Places::START,
            variables: Vec::new(),
            held_back: false,
            expands: true,
            may_skip: false,
        };
        if judge.project.place("", ".") == Place::Outside {
            judge.report(
                Code::PathOutside,
                Span::new(0, 0),
                "the working directory lies outside the project",
                None,
            );
        }
        judge
    }

    // ---- what is collected -------------------------------------------------------------------------------------

    pub(crate) fn report(
        &mut self,
        code: Code,
        span: Span,
        message: impl Into<Cow<'static, str>>,
        row: Option<Row>,
    ) {
        let findings = &mut self.out.findings;
        if findings.len() < MOST_FINDINGS
            && !findings.iter().any(|known| known.code == code && known.span == span && known.row == row)
        {
            findings.push(Finding { code, span, message: message.into(), row });
        }
    }

    /// The text of the command line there; none where there is no command line.
    pub(crate) fn source_at(&self, span: Span) -> Option<&'a str> {
        self.source.get(span.range())
    }

    pub(crate) fn need(&mut self, conditions: Conditions) {
        self.out.conditions = self.out.conditions.union(conditions);
    }

    pub(crate) fn need_one(&mut self, condition: Condition) {
        self.out.conditions = self.out.conditions.with(condition);
    }

    /// A path is read: it must lie inside the project from every directory that the command may run in.
    pub(crate) fn read_path(&mut self, arg: &Arg<'a>) {
        match arg.shape {
            Shape::Exact => {
                if arg.text.is_empty() {
                    return;
                }
            }
            Shape::Pattern { .. } => {
                if arg.text.split('/').any(may_match_parent) {
                    self.report(Code::PathUnknown, arg.span, "the pattern may match `..`", None);
                    return;
                }
            }
            Shape::Opaque { .. } => {
                self.report(Code::PathUnknown, arg.span, "the path's text is not known", None);
                return;
            }
        }
        for id in self.places.iter() {
            let directory = self.out.effects.directories.get(usize::from(id)).map_or("", String::as_str);
            match self.project.place(directory, &arg.text) {
                Place::NullDevice => return,
                Place::Outside => {
                    self.report(Code::PathOutside, arg.span, "lies outside the project", None);
                    return;
                }
                Place::InsideThroughParent if self.grammar == Grammar::Pipeline => {
                    self.report(Code::PathParent, arg.span, "has a `..` component", None);
                    return;
                }
                Place::Inside | Place::InsideThroughParent => {}
            }
        }
        self.need_one(Condition::PathsResolveInside);
        self.use_path(arg, false);
    }

    /// A path is written. The caller reports the finding.
    pub(crate) fn write_path(&mut self, arg: &Arg<'a>) {
        self.use_path(arg, true);
    }

    fn use_path(&mut self, arg: &Arg<'a>, write: bool) {
        let pattern = matches!(arg.shape, Shape::Pattern { .. });
        for id in self.places.iter() {
            let exact = matches!(arg.shape, Shape::Exact);
            let used = PathUse { path: borrow(&arg.text), span: arg.span, pattern, exact, directory: id };
            let effects = &mut self.out.effects;
            let list = if write { &mut effects.writes } else { &mut effects.reads };
            if list.len() >= MOST_EFFECTS {
                self.report(Code::TooLarge, arg.span, "names more paths than the limit allows", None);
                return;
            }
            list.push(used);
        }
    }

    /// A host is reached. The caller reports the finding.
    pub(crate) fn reach(&mut self, arg: &Arg<'a>) {
        self.out.effects.network.push(borrow(&arg.text));
    }

    /// A git revision, range, `revision:path` or path: whatever of it may be a path must lie inside. Outside a
    /// repository git takes even `main..topic` for a path, so every operand that could be one counts as one.
    pub(crate) fn revision(&mut self, arg: &Arg<'a>) {
        if let Shape::Opaque { .. } = arg.shape {
            self.report(Code::Expansion, arg.span, "might be a path outside the project", None);
            return;
        }
        let magic = |text: &str| text.starts_with([':', '(', '!', '^', '/']);
        if let Some(rest) = arg.text.strip_prefix(':')
            && magic(rest)
        {
            // `:(exclude)x`, `:!x`, `:/text`: git lets none of them leave the repository.
            return;
        }
        self.read_path(arg);
        if arg.shape == Shape::Exact
            && let Some((_, path)) = arg.text.split_once(':')
        {
            let committed = Arg::exact(path.trim_start_matches('/').to_string(), arg.span);
            self.read_path(&committed);
        }
    }

    // ---- words -------------------------------------------------------------------------------------------------

    /// Appends what `word` becomes.
    pub(crate) fn word(&mut self, word: &Word<'a>, args: &mut Vec<Arg<'a>>) {
        let parts = match &word.value {
            WordValue::Literal(text) => {
                args.push(Arg::exact(borrow(text), word.span));
                return;
            }
            WordValue::Composite(parts) => parts,
        };
        let mut text = String::new();
        // The length of the known beginning, once something unknown has come.
        let mut known: Option<usize> = None;
        let mut pattern = false;
        let mut many = false;
        let mut opaque = false;
        let mut splits = false;
        for part in parts {
            match part {
                Part::Text(piece) => text.push_str(piece),
                Part::Glob(glob) => {
                    if self.expands {
                        known.get_or_insert(text.len());
                        pattern = true;
                        many = true;
                    }
                    match glob {
                        cmdgate_lexer::Glob::Any => text.push('*'),
                        cmdgate_lexer::Glob::One => text.push('?'),
                        cmdgate_lexer::Glob::Class(class) => text.push_str(class),
                    }
                }
                Part::Tilde(_) => {
                    self.report(
                        Code::PathOutside,
                        word.span,
                        "`~` is a home directory, outside the project",
                        None,
                    );
                    known.get_or_insert(text.len());
                    opaque = true;
                }
                Part::Variable { name, quoted } => {
                    if matches!(*name, "?" | "#") {
                        // A number between 0 and 255, or the count of arguments: never a flag, never a path outside.
                        text.push('0');
                    } else if let Some(value) = self.variable(name) {
                        match value.shape {
                            Shape::Exact if *quoted || splits_into_itself(&value.text) => {
                                text.push_str(&value.text);
                            }
                            Shape::Pattern { prefix, .. } if *quoted => {
                                known.get_or_insert(text.len() + prefix);
                                pattern = true;
                                text.push_str(&value.text);
                            }
                            Shape::Exact | Shape::Pattern { .. } | Shape::Opaque { .. } => {
                                known.get_or_insert(text.len());
                                opaque = true;
                                splits |= !quoted;
                            }
                        }
                    } else {
                        self.report(
                            Code::Variable,
                            word.span,
                            "uses a variable whose value is not known here",
                            None,
                        );
                        known.get_or_insert(text.len());
                        opaque = true;
                        splits |= !quoted;
                    }
                }
                Part::Substitution { list, quoted } => {
                    let expands = core::mem::replace(&mut self.expands, true);
                    self.in_subshell(|judge| judge.list(list, Inherited::TOP));
                    self.expands = expands;
                    known.get_or_insert(text.len());
                    opaque = true;
                    splits |= !quoted;
                }
                Part::Arithmetic { text: expression, quoted } => {
                    self.may_skip |= !crate::arithmetic::succeeds(expression);
                    known.get_or_insert(text.len());
                    opaque = true;
                    splits |= !quoted;
                }
            }
        }
        let shape = if opaque {
            text.truncate(known.unwrap_or(0));
            Shape::Opaque { splits }
        } else if pattern {
            Shape::Pattern { prefix: known.unwrap_or(0), many }
        } else {
            Shape::Exact
        };
        let arg = Arg { text: Cow::Owned(text), span: word.span, shape };
        if self.expands && matches!(shape, Shape::Pattern { many: true, .. }) {
            // The shell lists directories to expand it, whatever the word is to the program.
            self.read_path(&arg);
        }
        args.push(arg);
    }

    /// Like [`Self::word`] where the shell does not expand patterns.
    fn unexpanded(&mut self, word: &Word<'a>, args: &mut Vec<Arg<'a>>) {
        let before = core::mem::replace(&mut self.expands, false);
        self.word(word, args);
        self.expands = before;
    }

    fn variable(&self, name: &str) -> Option<Arg<'a>> {
        let variable = self.variables.iter().rev().find(|variable| variable.name == name)?;
        let mut value = variable.current.clone();
        if variable.values.len() > 1 && !variable.chosen {
            value.text = Cow::Borrowed("");
            value.shape = Shape::Opaque { splits: false };
        }
        Some(value)
    }

    /// Whether the script already sets this variable where it is followed: setting it again would make what is known
    /// of it depend on the path taken.
    fn is_tracked(&self, name: &str) -> bool {
        self.variables.iter().any(|variable| variable.name == name)
    }

    // ---- lists and pipelines -----------------------------------------------------------------------------------

    /// Runs `walk` as a subshell does: directory and variables are as before afterwards.
    fn in_subshell<T>(&mut self, walk: impl FnOnce(&mut Self) -> T) -> T {
        let places = self.places;
        let variables = self.variables.len();
        let may_skip = self.may_skip;
        let result = walk(self);
        self.places = places;
        self.variables.truncate(variables);
        self.may_skip = may_skip;
        result
    }

    /// Runs `walk` where it may or may not be reached: the directory afterwards may be the old or the new one.
    fn perhaps<T>(&mut self, span: Span, walk: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.places;
        let variables = self.variables.len();
        let result = walk(self);
        self.join_places(before, span);
        self.variables.truncate(variables);
        result
    }

    fn join_places(&mut self, other: Places, span: Span) {
        if !self.places.add_all(other) {
            self.report(Code::LostTrack, span, "changes directory more often than is followed", None);
        }
    }

    /// Judges a list; returns what its last pipeline prints if it is the only one.
    fn list(&mut self, list: &List<'a>, inherited: Inherited) -> Prints {
        // Where the shell may be when everything so far in this `&&`/`||` chain succeeded, and when it failed.
        let mut succeeded = self.places;
        let mut failed = Places::NOWHERE;
        let mut prints = Prints::Anything;
        let variables = self.variables.len();
        // Whether everything so far in this chain set variables and nothing else.
        let mut only_assigned = false;
        for item in &list.items {
            let span = item.pipeline.span;
            match item.connector {
                Connector::Then => {
                    self.places = succeeded;
                    self.join_places(failed, span);
                    succeeded = Places::NOWHERE;
                    failed = Places::NOWHERE;
                }
                Connector::And => {
                    self.places = succeeded;
                    succeeded = Places::NOWHERE;
                }
                Connector::Or => {
                    self.places = failed;
                    failed = Places::NOWHERE;
                    if self.places.len == 0 {
                        // Nothing that was followed can fail with a directory of its own; it still may fail.
                        self.places = succeeded;
                    }
                }
            }
            let may_be_skipped = item.connector != Connector::Then;
            let before = self.places;
            let known = self.variables.len();
            prints = self.pipeline(&item.pipeline, inherited);
            let assigned_alone = self.variables.len() > known;
            if assigned_alone && may_be_skipped {
                // `x=1 && y=2` always runs both; anything else may leave the variable unset.
                if item.connector != Connector::And || !only_assigned {
                    self.variables.truncate(known);
                }
            }
            only_assigned = is_assignment_item(item) && (!may_be_skipped || only_assigned);
            let mut kept = succeeded;
            let (on_success, on_failure) =
                if item.pipeline.negated { (before, self.places) } else { (self.places, before) };
            let both = item.pipeline.negated;
            // `{ cd x && false; }` fails where it has moved to.
            let compound = item.pipeline.stages.iter().any(|stage| matches!(stage, Command::Compound(_)));
            let ok = kept.add_all(on_success) && (!both || kept.add_all(on_failure));
            let ok = ok && failed.add_all(on_failure) && (!both && !compound || failed.add_all(on_success));
            if !ok {
                self.report(Code::LostTrack, span, "changes directory more often than is followed", None);
            }
            succeeded = kept;
        }
        self.places = succeeded;
        let whole = list.items.first().map_or(Span::new(0, 0), |item| item.pipeline.span);
        self.join_places(failed, whole);
        debug_assert!(
            self.variables.len() >= variables,
            "a list never forgets variables of its surroundings"
        );
        if list.items.len() == 1 { prints } else { Prints::Anything }
    }

    fn pipeline(&mut self, pipeline: &Pipeline<'a>, inherited: Inherited) -> Prints {
        if self.grammar == Grammar::Pipeline && (pipeline.negated || pipeline.timed) {
            self.report(
                Code::Construct,
                pipeline.span,
                "keywords are not admitted in the `pipeline` grammar",
                None,
            );
        }
        if pipeline.stages.len() == 1 {
            return pipeline.stages.first().map_or(Prints::Anything, |stage| self.stage(stage, inherited));
        }
        let mut upstream = inherited.upstream;
        let mut input_ends = inherited.input_ends;
        for stage in &pipeline.stages {
            upstream = self.in_subshell(|judge| judge.stage(stage, Inherited { input_ends, upstream }));
            input_ends = true;
        }
        upstream
    }

    fn stage(&mut self, command: &Command<'a>, inherited: Inherited) -> Prints {
        match command {
            Command::Simple(segment) => self.segment(segment, inherited),
            Command::Compound(compound) => {
                self.compound(compound, inherited);
                Prints::Anything
            }
        }
    }

    fn compound(&mut self, compound: &Compound<'a>, inherited: Inherited) {
        let fed = self.redirects(&compound.redirects);
        let known = self.variables.len();
        let inherited = Inherited { input_ends: inherited.input_ends || fed, upstream: Prints::Anything };
        match &compound.kind {
            CompoundKind::Subshell(list) => {
                self.in_subshell(|judge| judge.list(list, inherited));
            }
            CompoundKind::Group(list) => {
                self.list(list, inherited);
            }
            CompoundKind::For { name, name_span, words, body } => {
                self.for_loop(name, *name_span, words, body, inherited);
            }
            CompoundKind::While { until, condition, body } => {
                if !never_repeats(condition, *until) {
                    self.report(Code::Endless, compound.span, "nothing shows that this loop ends", None);
                }
                self.perhaps(compound.span, |judge| {
                    judge.list(condition, inherited);
                    judge.list(body, inherited);
                });
            }
            CompoundKind::If { branches, otherwise } => {
                let before = self.places;
                let mut after = Places::NOWHERE;
                let mut room = true;
                for (condition, body) in branches {
                    self.perhaps(compound.span, |judge| judge.list(condition, inherited));
                    let tested = self.places;
                    self.perhaps(compound.span, |judge| judge.list(body, inherited));
                    room &= after.add_all(self.places);
                    self.places = tested;
                }
                if let Some(list) = otherwise {
                    self.perhaps(compound.span, |judge| judge.list(list, inherited));
                }
                room &= after.add_all(self.places) && after.add_all(before);
                self.places = after;
                if !room {
                    self.report(
                        Code::LostTrack,
                        compound.span,
                        "changes directory more often than is followed",
                        None,
                    );
                }
            }
            CompoundKind::Case { word, arms } => {
                let mut ignored = Vec::new();
                self.unexpanded(word, &mut ignored);
                for (patterns, body) in arms {
                    for pattern in patterns {
                        self.unexpanded(pattern, &mut ignored);
                    }
                    if let Some(list) = body {
                        self.perhaps(compound.span, |judge| judge.list(list, inherited));
                    }
                }
            }
            CompoundKind::Arithmetic(_) => {}
            CompoundKind::Conditional(words) => {
                let mut args = Vec::with_capacity(words.len());
                for word in words {
                    self.unexpanded(word, &mut args);
                }
                crate::value::test::conditional(self, &args, compound.span);
            }
        }
        if !compound.redirects.is_empty() {
            // A redirection that fails leaves out all of it.
            self.variables.truncate(known);
        }
    }

    fn for_loop(
        &mut self,
        name: &'a str,
        name_span: Span,
        words: &[Word<'a>],
        body: &List<'a>,
        inherited: Inherited,
    ) {
        if !is_harmless_name(name) {
            let why = "a variable of this name may mean something to the shell or a program";
            self.report(Code::Assignment, name_span, why, None);
        }
        if self.is_tracked(name) {
            self.report(Code::Assignment, name_span, "is set more than once, which is not followed", None);
        }
        let mut values = Vec::with_capacity(words.len());
        for word in words {
            self.word(word, &mut values);
        }
        for value in &mut values {
            if let Shape::Pattern { many, .. } = &mut value.shape {
                *many = false;
            } else if let Shape::Opaque { splits } = &mut value.shape {
                // Each of the words it splits into becomes the value in its turn, and none is known.
                *splits = false;
                value.text = Cow::Borrowed("");
            }
        }
        let Some(first) = values.first().cloned() else {
            return;
        };
        let span = name_span;
        let known = self.variables.len();
        self.variables.push(Variable { name, current: first, values, chosen: false });
        // A second round starts where the first one ended.
        self.perhaps(span, |judge| {
            let before = judge.places;
            judge.list(body, inherited);
            let moved = judge.places;
            judge.join_places(before, span);
            if moved != before {
                judge.list(body, inherited);
                if judge.places.iter().any(|id| !moved.iter().chain(before.iter()).any(|known| known == id)) {
                    judge.report(Code::LostTrack, span, "changes directory in every round of the loop", None);
                }
            }
        });
        self.variables.truncate(known);
    }

    // ---- simple commands ---------------------------------------------------------------------------------------

    fn segment(&mut self, segment: &Segment<'a>, inherited: Inherited) -> Prints {
        if segment.words.is_empty() {
            self.redirects(&segment.redirects);
            let known = self.variables.len();
            for assignment in &segment.assignments {
                self.assign(assignment);
            }
            if !segment.redirects.is_empty() {
                self.variables.truncate(known);
            }
            if self.grammar == Grammar::Pipeline && !segment.assignments.is_empty() {
                self.report(
                    Code::Assignment,
                    segment.span,
                    "assignments are not admitted in the `pipeline` grammar",
                    None,
                );
            }
            return Prints::Anything;
        }
        for assignment in &segment.assignments {
            if self.grammar == Grammar::Pipeline || !is_harmless_assignment(assignment) {
                self.report(
                    Code::Assignment,
                    assignment.span,
                    "changes what the shell or the program does",
                    None,
                );
            }
        }
        let looped = self.loop_variables(segment);
        if looped.is_empty() {
            return self.command_once(segment, inherited);
        }
        self.each_combination(&looped, segment, inherited)
    }

    fn command_once(&mut self, segment: &Segment<'a>, inherited: Inherited) -> Prints {
        let fed = self.redirects(&segment.redirects);
        self.words_as_command(&segment.words, inherited.surroundings(fed, inherited.upstream))
    }

    fn words_as_command(&mut self, words: &[Word<'a>], around: Surroundings) -> Prints {
        let mut args = Vec::with_capacity(words.len());
        for word in words {
            self.word(word, &mut args);
        }
        self.command(&args, around)
    }

    /// The variables with several possible values that the words and redirections of `segment` use.
    fn loop_variables(&self, segment: &Segment<'a>) -> Vec<usize> {
        let mut used = Vec::new();
        if self.variables.is_empty() {
            return used;
        }
        let fed = segment.redirects.iter().filter_map(|redirect| match &redirect.kind {
            RedirectKind::Read(word) | RedirectKind::HereString(word) => Some(word),
            RedirectKind::Write { .. }
            | RedirectKind::WriteBoth { .. }
            | RedirectKind::ReadWrite(_)
            | RedirectKind::Duplicate(_)
            | RedirectKind::Close
            | RedirectKind::HereDocument { .. } => None,
        });
        for part in segment.words.iter().chain(fed).flat_map(Word::parts) {
            if let Part::Variable { name, .. } = part
                && let Some(at) = self.variables.iter().rposition(|variable| variable.name == *name)
                && self
                    .variables
                    .get(at)
                    .is_some_and(|variable| variable.values.len() > 1 && !variable.chosen)
                && !used.contains(&at)
            {
                used.push(at);
            }
        }
        used
    }

    fn each_combination(&mut self, looped: &[usize], segment: &Segment<'a>, inherited: Inherited) -> Prints {
        let sizes: Vec<usize> = looped
            .iter()
            .map(|at| self.variables.get(*at).map_or(1, |variable| variable.values.len()))
            .collect();
        let combinations = sizes.iter().fold(1_usize, |product, size| product.saturating_mul(*size));
        if combinations > MOST_COMBINATIONS {
            self.report(
                Code::TooLarge,
                segment.span,
                "has more combinations of loop values than are judged",
                None,
            );
            return Prints::Anything;
        }
        let before = self.places;
        let mut after = Places::NOWHERE;
        let mut room = true;
        for combination in 0..combinations {
            self.places = before;
            let mut rest = combination;
            for (at, size) in looped.iter().zip(&sizes) {
                let choice = rest % size;
                rest /= size;
                if let Some(variable) = self.variables.get_mut(*at)
                    && let Some(value) = variable.values.get(choice)
                {
                    variable.current = value.clone();
                    variable.chosen = true;
                }
            }
            self.command_once(segment, inherited);
            room &= after.add_all(self.places);
        }
        self.places = after;
        if !room {
            self.report(Code::LostTrack, segment.span, "changes directory more often than is followed", None);
        }
        for at in looped {
            if let Some(variable) = self.variables.get_mut(*at) {
                variable.chosen = false;
            }
        }
        Prints::Anything
    }

    fn assign(&mut self, assignment: &Assignment<'a>) {
        if !is_harmless_name(assignment.name) {
            let why = "a variable of this name may mean something to the shell or a program";
            self.report(Code::Assignment, assignment.span, why, None);
            return;
        }
        if assignment.append || self.is_tracked(assignment.name) {
            self.report(
                Code::Assignment,
                assignment.span,
                "is set more than once, which is not followed",
                None,
            );
            return;
        }
        let mut args = Vec::with_capacity(1);
        self.unexpanded(&assignment.value, &mut args);
        if let Some(mut value) = args.pop().filter(|_| !self.may_skip) {
            match &mut value.shape {
                // An assignment neither splits nor expands patterns: what looks like one in its text expands at its use. A
                // pattern can only come from a loop's variable (`x="$f"`), where it stands for one name.
                Shape::Exact => {}
                Shape::Pattern { many, .. } => *many = false,
                Shape::Opaque { splits } => *splits = false,
            }
            self.variables.push(Variable {
                name: assignment.name,
                current: value,
                values: Vec::new(),
                chosen: false,
            });
        }
    }

    /// Judges one command: its program, then its arguments by the program's table.
    pub(crate) fn command(&mut self, args: &[Arg<'a>], around: Surroundings) -> Prints {
        let Some((name, rest)) = args.split_first() else {
            return Prints::Anything;
        };
        if around.depth > MOST_WRAPPERS {
            self.report(Code::TooLarge, name.span, "is wrapped in more commands than are followed", None);
            return Prints::Anything;
        }
        let span = args.last().map_or(name.span, |last| name.span.to(last.span));
        let exact = args.iter().all(|arg| arg.shape == Shape::Exact) && around.tail == Tail::None;
        for id in self.places.iter() {
            let argv = args
                .iter()
                .map(|arg| match arg.shape {
                    Shape::Exact => borrow(&arg.text),
                    Shape::Pattern { .. } | Shape::Opaque { .. } => Cow::Borrowed(arg.span.of(self.source)),
                })
                .collect();
            self.out.effects.runs.push(Run { argv, span, exact, directory: id });
        }
        let Some(program) = name.literal() else {
            self.report(Code::Expansion, name.span, "which program this is cannot be known", None);
            return Prints::Anything;
        };
        if program.contains('/') {
            self.report(Code::ProgramPath, name.span, "a program named by its path may be any file", None);
            return Prints::Anything;
        }
        if program == "cd" && around.depth == 0 {
            self.change_directory(name.span, rest);
            return Prints::Anything;
        }
        let Some(spec) = commands::lookup(program) else {
            self.report(Code::UnknownProgram, name.span, "is not a program in the tables", None);
            return Prints::Anything;
        };
        self.need_one(Condition::CleanEnvironment);
        let before = self.out.conditions;
        let outer = core::mem::replace(&mut self.held_back, false);
        let prints = Reader::new(self, spec, spec, name.span, rest, around).read();
        // The conditions of a command that is held back are not those of the others on its line.
        if core::mem::replace(&mut self.held_back, outer) {
            self.out.conditions = before;
        }
        prints
    }

    /// Where the command may be.
    pub(crate) const fn place(&self) -> Places {
        self.places
    }

    /// Back to where it was.
    pub(crate) const fn return_to(&mut self, places: Places) {
        self.places = places;
    }

    /// A program first changes into the directory `target` (`git -C`).
    pub(crate) fn change_to(&mut self, target: &Arg<'a>) {
        match target.literal() {
            None => {
                self.report(Code::PathUnknown, target.span, "which directory this is cannot be known", None);
            }
            Some("") => {}
            // The program goes where the symlinks lead, and only then up.
            Some(path) if path.split('/').any(|part| part == "..") => {
                self.report(Code::LostTrack, target.span, "a directory with `..` is not followed here", None);
            }
            Some(path) => {
                let path = path.to_string();
                self.read_path(target);
                self.enter(&path, target.span);
            }
        }
    }

    /// Git looks for a repository from here.
    pub(crate) fn uses_repository(&mut self) {
        for id in self.places.iter() {
            if self.out.effects.directories.is_empty() {
                self.out.effects.directories.push(String::new());
            }
            let known = &mut self.out.effects.repositories;
            if !known.contains(&id) {
                known.push(id);
            }
        }
    }

    /// Which shell constructs are admitted.
    pub(crate) const fn grammar(&self) -> Grammar {
        self.grammar
    }

    /// `cd DIR`: later commands of this shell run there, or here still if it fails.
    fn change_directory(&mut self, name: Span, args: &[Arg<'a>]) {
        self.need_one(Condition::CleanEnvironment);
        let mut operands = args.iter();
        let mut target = operands.next();
        if target.and_then(Arg::literal) == Some("--") {
            target = operands.next();
        }
        let Some(target) = target else {
            self.report(Code::PathOutside, name, "without an operand `cd` goes to the home directory", None);
            return;
        };
        if let Some(extra) = operands.next() {
            self.report(Code::TooManyOperands, extra.span, "`cd` takes one directory", None);
            return;
        }
        let Some(path) = target.literal() else {
            self.report(Code::PathUnknown, target.span, "which directory this is cannot be known", None);
            return;
        };
        if path.starts_with('-') || path.is_empty() {
            self.report(Code::LostTrack, target.span, "this form of `cd` is not followed", None);
            return;
        }
        let path = path.to_string();
        self.read_path(target);
        self.enter(&path, target.span);
    }

    /// Moves to `path`, from wherever the command may be.
    fn enter(&mut self, path: &str, span: Span) {
        let mut moved = Places::NOWHERE;
        let mut room = true;
        for id in self.places.iter() {
            let directory = join(self.out.effects.directory(id), path);
            room &= self.intern(&normal(&directory)).is_some_and(|new| moved.add(new));
        }
        if !room {
            self.report(Code::LostTrack, span, "changes directory more often than is followed", None);
        }
        self.places = moved;
    }

    /// The index of a directory in the effects.
    fn intern(&mut self, directory: &str) -> Option<u16> {
        let directories = &mut self.out.effects.directories;
        if directories.is_empty() {
            directories.push(String::new());
        }
        if let Some(at) = directories.iter().position(|known| known == directory) {
            return u16::try_from(at).ok();
        }
        directories.push(directory.to_string());
        u16::try_from(directories.len() - 1).ok().filter(|id| *id < 256)
    }
}

/// Whether a pattern's path component may match `..`: it begins with a dot, which nothing but a dot matches, and what
/// follows may be one character. Bash 5.2 no longer does this (`globskipdots`), older ones do.
fn may_match_parent(component: &str) -> bool {
    let Some(rest) = component.strip_prefix('.') else {
        return false;
    };
    if !rest.contains(['*', '?', '[']) {
        return false;
    }
    let mut single = 0;
    let mut chars = rest.chars();
    while let Some(c) = chars.next() {
        match c {
            '*' => {}
            '.' | '?' => single += 1,
            '[' => {
                // The first character of a set may be the closing bracket itself.
                chars.next();
                if !chars.any(|c| c == ']') {
                    return false;
                }
                single += 1;
            }
            _ => return false,
        }
    }
    single <= 1
}

/// Lexical normal form of a directory, as the shell's own `cd` makes it: without `.` and with `..` cancelled.
fn normal(path: &str) -> String {
    let mut stack: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                if stack.last().is_some_and(|last| *last != "..") {
                    stack.pop();
                } else if !path.starts_with('/') {
                    stack.push("..");
                }
            }
            part => stack.push(part),
        }
    }
    let joined = stack.join("/");
    if path.starts_with('/') { ["/", &joined].concat() } else { joined }
}

/// The same text, borrowed from the command where it was.
pub(crate) fn borrow<'a>(text: &Cow<'a, str>) -> Cow<'a, str> {
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(text),
        Cow::Owned(text) => Cow::Owned(text.clone()),
    }
}

/// Whether an unquoted variable with this value stays one word of the same text.
fn splits_into_itself(text: &str) -> bool {
    !text.is_empty() && !text.contains([' ', '\t', '\n', '*', '?', '[', '\\'])
}

/// Whether a variable of this name means nothing to bash or to any program: lower-case names that are not among the
/// few that do, and single capital letters. The executor's environment holds none of them, so an assignment does not
/// change what a program inherits. Zsh, in which an agent may run what was judged here, ties some to `PATH` and its kind.
fn is_harmless_name(name: &str) -> bool {
    let lower = name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
    let single = name.len() == 1 && name.bytes().all(|b| b.is_ascii_uppercase());
    let special = matches!(name, "histchars" | "auto_resume" | "path" | "cdpath" | "fpath" | "module_path");
    (lower || single) && !special && !name.ends_with("_proxy")
}

/// An assignment before a command that changes only how its output looks.
fn is_harmless_assignment(assignment: &Assignment<'_>) -> bool {
    let Some(value) = assignment.value.literal() else {
        return false;
    };
    if assignment.append {
        return false;
    }
    match assignment.name {
        "LC_ALL" | "LANG" | "LC_CTYPE" | "LC_COLLATE" | "LC_MESSAGES" | "LC_NUMERIC" | "LC_TIME" => {
            matches!(value, "C" | "POSIX" | "C.UTF-8" | "C.utf8" | "en_US.UTF-8" | "en_US.utf8")
        }
        "NO_COLOR" | "FORCE_COLOR" | "CLICOLOR" | "CLICOLOR_FORCE" | "CI" => {
            matches!(value, "" | "0" | "1" | "2" | "3" | "true" | "false")
        }
        "TERM" => value == "dumb",
        "COLUMNS" => !value.is_empty() && value.len() < 6 && value.bytes().all(|byte| byte.is_ascii_digit()),
        "TZ" => is_zone(value),
        "GIT_PAGER" | "PAGER" => value == "cat",
        "GIT_OPTIONAL_LOCKS" | "GIT_TERMINAL_PROMPT" => value == "0",
        _ => false,
    }
}

/// A time zone of the system's own database. With a colon or a slash in front it would be any file.
fn is_zone(value: &str) -> bool {
    value.split('/').all(|part| {
        part.starts_with(|c: char| c.is_ascii_alphabetic())
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'+'))
    })
}

/// Whether it only sets variables, and cannot fail.
fn is_assignment_item(item: &cmdgate_lexer::ListItem<'_>) -> bool {
    let fixed = |assignment: &Assignment<'_>| {
        assignment.value.parts().iter().all(|part| !matches!(part, Part::Substitution { .. }))
    };
    matches!(item.pipeline.stages.as_slice(),
        [Command::Simple(segment)] if segment.words.is_empty() && segment.redirects.is_empty()
            && !item.pipeline.negated && segment.assignments.iter().all(fixed))
}

/// Whether a `while` or `until` loop with this condition never runs its body.
fn never_repeats(condition: &List<'_>, until: bool) -> bool {
    let never = if until { "true" } else { "false" };
    match condition.items.as_slice() {
        [only] if !only.pipeline.negated => match only.pipeline.stages.as_slice() {
            [Command::Simple(segment)] => {
                segment.assignments.is_empty()
                    && matches!(segment.words.as_slice(), [word] if word.literal() == Some(never))
            }
            _ => false,
        },
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::may_match_parent;

    #[test]
    fn what_may_match_the_parent_directory() {
        // contract: S9
        for may in [".*", ".?", ".[.]", ".[a.]", ".[!a]", ".[]a.]", "..*", ".*.", ".**"] {
            assert!(may_match_parent(may), "{may}");
        }
        for never in [".", "..", "*", "?.", "[.].", "[id]", ".e*", ".*rc", ".??", ".?.", "...*", ".[a", "a.*"]
        {
            assert!(!may_match_parent(never), "{never}");
        }
    }
}
