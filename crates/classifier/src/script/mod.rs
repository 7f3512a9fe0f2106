//! Walks a command line: lists, pipelines, directories, variables, and the commands in them.

mod loops;
mod places;
mod variables;
mod words;

use crate::arg::{Arg, Shape};
use crate::argv::{Reader, Surroundings, Tail};
use crate::commands;
use crate::condition::{Condition, Conditions};
use crate::effect::{PathUse, Run};
use crate::finding::{Code, Finding, Row};
use crate::paths::{Place, Project};
use crate::spec::Prints;
use crate::{Classification, Context};
use alloc::borrow::Cow;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use cmdgate_lexer::{
    Command, Compound, CompoundKind, Connector, Grammar, List, Pipeline, Redirect, RedirectKind, Segment,
    Span, Word, lex,
};

pub(crate) use places::Places;
use places::may_match_parent;
use variables::{Variable, is_assignment_item, is_harmless_assignment, is_harmless_name};
pub(crate) use words::{borrow, push_literal};

/// Wrapped commands (`timeout 5 nice xargs …`) deeper than this are held back.
const MOST_WRAPPERS: u8 = 8;
/// Findings beyond this many add nothing for a reader.
const MOST_FINDINGS: usize = 64;
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
    /// What the last `<( … )` prints.
    pipe_prints: Prints,
    /// Where the shell may be when the rounds of the loops around begin, the innermost last.
    rounds_begin_in: Vec<Places>,
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
            pipe_prints: Prints::Anything,
            rounds_begin_in: Vec::new(),
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
                    // What it matches besides is still of interest to whoever has rules about paths.
                    self.report(Code::PathUnknown, arg.span, "the pattern may match `..`", None);
                }
            }
            Shape::Pipe => return,
            Shape::Opaque { .. } => {
                self.report(Code::PathUnknown, arg.span, "the path's text is not known", None);
                return;
            }
        }
        let mut outside = false;
        for id in self.places.iter() {
            let directory = self.out.effects.directories.get(usize::from(id)).map_or("", String::as_str);
            match self.project.place(directory, &arg.text) {
                Place::NullDevice => return,
                Place::Outside => {
                    self.report(Code::PathOutside, arg.span, "lies outside the project", None);
                    outside = true;
                    break;
                }
                Place::InsideThroughParent if self.grammar == Grammar::Pipeline => {
                    self.report(Code::PathParent, arg.span, "has a `..` component", None);
                    outside = true;
                    break;
                }
                Place::Inside | Place::InsideThroughParent => {}
            }
        }
        if !outside {
            self.need_one(Condition::PathsResolveInside);
        }
        // What lies outside is of interest to whoever has rules about paths.
        self.use_path(arg, Use::Read { outside });
    }

    /// A path is written. The caller reports the finding.
    pub(crate) fn write_path(&mut self, arg: &Arg<'a>) {
        self.use_path(arg, Use::Write);
    }

    fn use_path(&mut self, arg: &Arg<'a>, how: Use) {
        let pattern = matches!(arg.shape, Shape::Pattern { .. });
        let outside = matches!(how, Use::Read { outside: true });
        for id in self.places.iter() {
            let exact = matches!(arg.shape, Shape::Exact);
            let path = if pattern { Cow::Owned(words::widened(&arg.text)) } else { borrow(&arg.text) };
            let used = PathUse { path, span: arg.span, pattern, exact, outside, directory: id };
            let effects = &mut self.out.effects;
            let list = match how {
                Use::Read { .. } => &mut effects.reads,
                Use::Write => &mut effects.writes,
            };
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
        if let Shape::Pipe | Shape::Opaque { .. } = arg.shape {
            self.report(Code::Expansion, arg.span, "might be a path outside the project", None);
            return;
        }
        let magic = |text: &str| text.starts_with([':', '(', '!', '^', '/']);
        if let Some(rest) = arg.text.strip_prefix(':')
            && magic(rest)
        {
            // `:(exclude)x`, `:!x`, `:/text`: in a repository none of them is a path. But where a text can lead out of it
            // (`:/../../x` where there is a directory `:`), `git diff` compares files.
            self.read_path(arg);
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

    // ---- lists and pipelines -----------------------------------------------------------------------------------

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
                    if self.places.is_empty() {
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
        let mut end = pipeline.span.start;
        for stage in &pipeline.stages {
            let span = match stage {
                Command::Simple(segment) => segment.span,
                Command::Compound(compound) => compound.span,
            };
            if self.source_at(Span::new(end, span.start)).is_none_or(|between| between.contains("|&")) {
                // What the stage before complains of comes with its output.
                upstream = Prints::Anything;
            }
            end = span.end;
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
        let upstream = match compound.redirects.as_slice() {
            // `done < <(find …)`
            [redirect] if fed && redirects_from_pipe(redirect) => self.pipe_prints,
            _ if fed => Prints::Anything,
            _ => inherited.upstream,
        };
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
            CompoundKind::While { until: false, condition, body }
                if let Some(input) = loops::reads_lines(condition) =>
            {
                self.read_loop(&input, body, Inherited { upstream, ..inherited }, compound.span);
            }
            CompoundKind::While { until, condition, body } => {
                if !loops::never_repeats(condition, *until) {
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
                let looped = self.loop_variables(words.iter());
                self.each_combination(&looped, compound.span, |judge| {
                    let mut args = Vec::with_capacity(words.len());
                    for word in words {
                        judge.unexpanded(word, &mut args);
                    }
                    crate::value::test::conditional(judge, &args, compound.span);
                });
            }
        }
        if !compound.redirects.is_empty() {
            // A redirection that fails leaves out all of it.
            self.variables.truncate(known);
        }
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
        let fed = segment.redirects.iter().filter_map(|redirect| match &redirect.kind {
            RedirectKind::Read(word) | RedirectKind::HereString(word) => Some(word),
            RedirectKind::Write { .. }
            | RedirectKind::WriteBoth { .. }
            | RedirectKind::ReadWrite(_)
            | RedirectKind::Duplicate(_)
            | RedirectKind::Close
            | RedirectKind::HereDocument { .. } => None,
        });
        let looped = self.loop_variables(segment.words.iter().chain(fed));
        if looped.is_empty() {
            return self.command_once(segment, inherited);
        }
        self.each_combination(&looped, segment.span, |judge| {
            judge.command_once(segment, inherited);
        });
        Prints::Anything
    }

    fn command_once(&mut self, segment: &Segment<'a>, inherited: Inherited) -> Prints {
        let fed = self.redirects(&segment.redirects);
        let prints = self.words_as_command(&segment.words, inherited.surroundings(fed, inherited.upstream));
        // `2>&1`: messages come with the output, and quote the text that they complain of.
        let duplicates = |redirect: &Redirect<'_>| matches!(redirect.kind, RedirectKind::Duplicate(_));
        if segment.redirects.iter().any(duplicates) { Prints::Anything } else { prints }
    }

    fn words_as_command(&mut self, words: &[Word<'a>], around: Surroundings) -> Prints {
        let mut args = Vec::with_capacity(words.len());
        for word in words {
            self.word(word, &mut args);
        }
        self.command(&args, around)
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
                    Shape::Pattern { .. } | Shape::Pipe | Shape::Opaque { .. } => {
                        Cow::Borrowed(arg.span.of(self.source))
                    }
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
        if matches!(program, "break" | "continue")
            && around.depth == 0
            && self.may_leave_round(name.span, rest)
        {
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

    /// Which shell constructs are admitted.
    pub(crate) const fn grammar(&self) -> Grammar {
        self.grammar
    }
}

/// What a command does with a path.
#[derive(Debug, Clone, Copy)]
enum Use {
    Read { outside: bool },
    Write,
}

/// Whether standard input comes from `<( … )`.
fn redirects_from_pipe(redirect: &Redirect<'_>) -> bool {
    matches!(&redirect.kind, RedirectKind::Read(word)
        if matches!(word.parts(), [cmdgate_lexer::Part::Substitution { pipe: true, .. }]))
}
