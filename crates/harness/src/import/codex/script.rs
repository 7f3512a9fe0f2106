//! Reads a rules file without running it: the parser of the Starlark project gives the tree, and only what a list of
//! rules needs is worked out of it, within limits. There is nothing to call but the three functions that make rules, no
//! `load`, and no loop but over a list that stands there. Whatever else the language has is an error, and then no rule of
//! the file is taken: one that was not understood might have been the one that denies.

use starlark_syntax::codemap::{Span, Spanned};
use starlark_syntax::syntax::ast::{
    ArgumentP, AssignOp, AssignTargetP, AstExpr, AstLiteral, AstNoPayload, AstStmt, BinOp, CallArgsP,
    ClauseP, ExprP, ForClauseP, StmtP,
};
use starlark_syntax::syntax::{AstModule, Dialect};
use std::collections::HashMap;

/// The largest file, in bytes.
const LARGEST: usize = 256 * 1024;
/// How deep brackets, and expressions, may nest.
const DEEPEST: usize = 100;
/// How many expressions are worked out.
const MOST_STEPS: usize = 200_000;
/// How many bytes and elements all values may have that are made by joining others.
const LARGEST_VALUES: usize = 8 * 1024 * 1024;
/// The parser descends into what nests without brackets as well: a chain of a file's length still fits.
const STACK: usize = 512 * 1024 * 1024;
/// What a file may call.
const FUNCTIONS: [&str; 3] = ["prefix_rule", "host_executable", "network_rule"];

/// What is wrong, and in which line.
pub(super) type Wrong = (usize, String);

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Given {
    Text(String),
    List(Vec<Given>),
    /// `("a", "b")`, which Codex takes for no list.
    Tuple(Vec<Given>),
    Flag(bool),
    /// `None`
    Nothing,
}

impl Given {
    pub(super) fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::List(_) | Self::Tuple(_) | Self::Flag(_) | Self::Nothing => None,
        }
    }

    fn size(&self) -> usize {
        match self {
            Self::Text(text) => text.len() + 1,
            Self::List(items) | Self::Tuple(items) => items.iter().map(Self::size).sum::<usize>() + 1,
            Self::Flag(_) | Self::Nothing => 1,
        }
    }
}

/// A call of one of the functions.
#[derive(Debug, Clone)]
pub(super) struct Call {
    pub(super) function: String,
    pub(super) line: usize,
    arguments: Vec<(String, Given)>,
}

impl Call {
    /// An argument. Codex accepts `None` for none of them.
    pub(super) fn get(&self, name: &str) -> Option<&Given> {
        self.arguments.iter().find(|(known, _)| known == name).map(|(_, given)| given)
    }

    pub(super) fn text(&self, name: &str) -> Result<Option<&str>, &'static str> {
        match self.get(name) {
            None => Ok(None),
            Some(given) => given.as_text().map(Some).ok_or("an argument that is a text is none"),
        }
    }

    pub(super) fn texts(&self, name: &str) -> Result<Option<Vec<String>>, &'static str> {
        match self.get(name) {
            None => Ok(None),
            Some(Given::List(items)) => {
                let texts: Option<Vec<String>> =
                    items.iter().map(|item| item.as_text().map(ToOwned::to_owned)).collect();
                texts.map(Some).ok_or("an argument that is a list of texts is none")
            }
            Some(_) => Err("an argument that is a list of texts is none"),
        }
    }

    /// Examples of commands, each a text that a shell would split, or a list of words.
    pub(super) fn examples(&self, name: &str) -> Result<Vec<Vec<String>>, String> {
        let wrong = || format!("`{name}` is a list of commands, each a text or a list of words");
        let items = match self.get(name) {
            None => return Ok(Vec::new()),
            Some(Given::List(items)) => items,
            Some(_) => return Err(wrong()),
        };
        let example = |item: &Given| {
            let words: Vec<String> = match item {
                Given::Text(text) => {
                    shlex::split(text).ok_or_else(|| format!("a quote in `{text}` is not closed"))?
                }
                Given::List(words) => words
                    .iter()
                    .map(|word| word.as_text().map(ToOwned::to_owned).ok_or_else(wrong))
                    .collect::<Result<_, _>>()?,
                Given::Tuple(_) | Given::Flag(_) | Given::Nothing => return Err(wrong()),
            };
            if words.is_empty() { Err(format!("an example in `{name}` is empty")) } else { Ok(words) }
        };
        items.iter().map(example).collect()
    }

    /// Whether there are no other arguments than these.
    pub(super) fn only(&self, known: &[&str]) -> Result<(), String> {
        match self.arguments.iter().find(|(name, _)| !known.contains(&name.as_str())) {
            Some((name, _)) => Err(format!("`{name}` is not known")),
            None => Ok(()),
        }
    }

    /// The call on one line.
    pub(super) fn shown(&self) -> String {
        fn show(given: &Given) -> String {
            match given {
                Given::Text(text) => format!("{text:?}"),
                Given::List(items) => format!("[{}]", items.iter().map(show).collect::<Vec<_>>().join(", ")),
                Given::Tuple(items) => format!("({})", items.iter().map(show).collect::<Vec<_>>().join(", ")),
                Given::Flag(flag) => flag.to_string(),
                Given::Nothing => "None".to_owned(),
            }
        }
        let arguments =
            self.arguments.iter().filter(|(name, _)| !matches!(name.as_str(), "match" | "not_match"));
        let arguments: Vec<String> =
            arguments.map(|(name, given)| format!("{name}={}", show(given))).collect();
        format!("{}({})", self.function, arguments.join(", "))
    }
}

/// The calls of a file, in their order.
pub(super) fn read(text: &str) -> Result<Vec<Call>, Wrong> {
    if text.len() > LARGEST {
        return Err((1, format!("the file has {} bytes, and at most {LARGEST} are read", text.len())));
    }
    refuse_depth(text)?;
    // Its own stack, because the parser descends as deep as the text nests.
    std::thread::scope(|scope| {
        let read = || read_here(text);
        let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, read);
        let thread = thread.map_err(|error| (1, format!("the file cannot be read: {error}")))?;
        thread.join().unwrap_or_else(|_| Err((1, "the file cannot be read: its parser failed".to_owned())))
    })
}

/// Brackets and signs that nest too deep for any rule. Quotes are not looked at: a text with that many is none either.
fn refuse_depth(text: &str) -> Result<(), Wrong> {
    let (mut depth, mut signs, mut nots) = (0_usize, 0_usize, 0_usize);
    for (number, line) in text.lines().enumerate() {
        for c in line.chars() {
            match c {
                '(' | '[' | '{' => depth += 1,
                ')' | ']' | '}' => depth = depth.saturating_sub(1),
                '-' | '+' | '~' => signs += 1,
                c if c.is_whitespace() || c == '\\' => {}
                _ => signs = 0,
            }
            // A comment may draw a line of dashes.
            if c == '#' {
                break;
            }
            if depth > DEEPEST || signs > DEEPEST {
                return Err((number + 1, format!("it nests more than {DEEPEST} deep")));
            }
        }
        for word in line.split_whitespace() {
            nots = if word == "not" { nots + 1 } else { 0 };
            if nots > DEEPEST {
                return Err((number + 1, format!("it nests more than {DEEPEST} deep")));
            }
        }
    }
    Ok(())
}

fn read_here(text: &str) -> Result<Vec<Call>, Wrong> {
    let dialect = Dialect { enable_top_level_stmt: true, enable_f_strings: true, ..Dialect::Standard };
    let parsed = AstModule::parse("rules", text.to_owned(), &dialect).map_err(|error| {
        let line = error.span().map_or(1, |span| span.resolve_span().begin.line + 1);
        (line, super::super::one_line(&error.without_diagnostic().to_string()))
    })?;
    let mut reader = Reader { text, names: HashMap::new(), calls: Vec::new(), steps: 0, made: 0 };
    reader.statement(parsed.statement(), 0)?;
    Ok(reader.calls)
}

struct Reader<'t> {
    text: &'t str,
    names: HashMap<String, Given>,
    calls: Vec<Call>,
    steps: usize,
    made: usize,
}

impl Reader<'_> {
    fn line(&self, span: Span) -> usize {
        let end = usize::try_from(span.begin().get()).unwrap_or(usize::MAX);
        self.text.bytes().take(end).filter(|byte| *byte == b'\n').count() + 1
    }

    fn wrong<T>(&self, at: Span, what: impl Into<String>) -> Result<T, Wrong> {
        Err((self.line(at), what.into()))
    }

    fn step(&mut self, at: Span, depth: usize) -> Result<(), Wrong> {
        self.steps += 1;
        if self.steps > MOST_STEPS {
            return self.wrong(at, format!("the file takes more than {MOST_STEPS} steps"));
        }
        if depth > DEEPEST {
            return self.wrong(at, format!("it nests more than {DEEPEST} deep"));
        }
        Ok(())
    }

    fn keep(&mut self, at: Span, given: Given) -> Result<Given, Wrong> {
        self.made = self.made.saturating_add(given.size());
        if self.made > LARGEST_VALUES {
            return self.wrong(at, "the values of the file are too large");
        }
        Ok(given)
    }

    fn statement(&mut self, statement: &AstStmt, depth: usize) -> Result<(), Wrong> {
        let at = statement.span;
        self.step(at, depth)?;
        match &statement.node {
            StmtP::Pass => Ok(()),
            StmtP::Statements(statements) => {
                statements.iter().try_for_each(|statement| self.statement(statement, depth + 1))
            }
            StmtP::Expression(expression) => {
                if let ExprP::Call(function, arguments) = &expression.node {
                    self.call(function, arguments, expression.span, depth + 1)
                } else if let ExprP::ListComprehension(item, first, clauses) = &expression.node {
                    // `[prefix_rule(…) for word in words]`
                    self.comprehension(item, first, clauses, depth + 1).map(|_| ())
                } else if let ExprP::Literal(AstLiteral::String(_)) = &expression.node {
                    // A text that stands alone is a comment.
                    Ok(())
                } else {
                    self.wrong(at, "only calls, values and loops over lists are read")
                }
            }
            StmtP::Assign(assign) => {
                let given = self.value(&assign.rhs, depth + 1)?;
                self.assign(&assign.lhs, given)
            }
            StmtP::AssignModify(target, AssignOp::Add, value) => {
                let AssignTargetP::Identifier(name) = &target.node else {
                    return self.wrong(at, "only names are assigned to");
                };
                let added = self.value(value, depth + 1)?;
                let known = self.name(&name.node.ident, at)?;
                if !matches!(known, Given::Text(_)) {
                    // The list itself changes, under all of its names.
                    return self.wrong(at, "`+=` is read for texts only: write `x = x + […]` for a list");
                }
                let sum = self.add(known, added, at)?;
                self.assign(target, sum)
            }
            StmtP::For(loop_) => {
                for given in self.list(&loop_.over, depth + 1)? {
                    self.assign(&loop_.var, given)?;
                    self.statement(&loop_.body, depth + 1)?;
                }
                Ok(())
            }
            StmtP::Load(_) => self.wrong(at, "`load` is not read: name the other file as well"),
            StmtP::Def(_) | StmtP::Return(_) => self.wrong(at, "functions are not read: write the rules out"),
            StmtP::If(..) | StmtP::IfElse(..) | StmtP::Break | StmtP::Continue | StmtP::AssignModify(..) => {
                self.wrong(at, "only calls, values and loops over lists are read: write the rules out")
            }
        }
    }

    fn assign(&mut self, target: &Spanned<AssignTargetP<AstNoPayload>>, given: Given) -> Result<(), Wrong> {
        match (&target.node, given) {
            (AssignTargetP::Identifier(name), given) => {
                let name = &name.node.ident;
                if FUNCTIONS.contains(&name.as_str()) || matches!(name.as_str(), "True" | "False" | "None") {
                    return self.wrong(target.span, format!("`{name}` cannot be set"));
                }
                self.names.insert(name.clone(), given);
                Ok(())
            }
            (AssignTargetP::Tuple(targets), Given::List(items) | Given::Tuple(items))
                if targets.len() == items.len() =>
            {
                targets.iter().zip(items).try_for_each(|(target, item)| self.assign(target, item))
            }
            (AssignTargetP::Tuple(_) | AssignTargetP::Index(_) | AssignTargetP::Dot(..), _) => {
                self.wrong(target.span, "only names are assigned to")
            }
        }
    }

    fn call(
        &mut self,
        function: &AstExpr,
        given: &CallArgsP<AstNoPayload>,
        at: Span,
        depth: usize,
    ) -> Result<(), Wrong> {
        let name =
            if let ExprP::Identifier(name) = &function.node { name.node.ident.as_str() } else { "this" };
        let Some(name) = FUNCTIONS.into_iter().find(|known| *known == name) else {
            return self.wrong(at, format!("`{name}` is none of {}", FUNCTIONS.join(", ")));
        };
        let mut arguments: Vec<(String, Given)> = Vec::new();
        for (number, argument) in given.args.iter().enumerate() {
            let (key, value) = match &argument.node {
                ArgumentP::Named(key, value) => (key.node.as_str(), value),
                ArgumentP::Positional(value) if number == 0 => {
                    let first = match name {
                        "prefix_rule" => "pattern",
                        "network_rule" => "host",
                        _ => "name",
                    };
                    (first, value)
                }
                ArgumentP::Positional(_) | ArgumentP::Args(_) | ArgumentP::KwArgs(_) => {
                    return self.wrong(at, "write every argument with its name");
                }
            };
            if arguments.iter().any(|(known, _)| known == key) {
                return self.wrong(at, format!("`{key}` is given twice"));
            }
            let value = self.value(value, depth + 1)?;
            arguments.push((key.to_owned(), value));
        }
        let line = self.line(at);
        self.calls.push(Call { function: name.to_owned(), line, arguments });
        Ok(())
    }

    fn name(&self, name: &str, at: Span) -> Result<Given, Wrong> {
        match (name, self.names.get(name)) {
            (_, Some(given)) => Ok(given.clone()),
            ("True", None) => Ok(Given::Flag(true)),
            ("False", None) => Ok(Given::Flag(false)),
            ("None", None) => Ok(Given::Nothing),
            (_, None) => self.wrong(at, format!("`{name}` is not set before")),
        }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "whatever else the language has is refused")]
    fn value(&mut self, expression: &AstExpr, depth: usize) -> Result<Given, Wrong> {
        let at = expression.span;
        self.step(at, depth)?;
        let given = match &expression.node {
            ExprP::Literal(AstLiteral::String(text)) => Given::Text(text.node.clone()),
            ExprP::List(items) => Given::List(self.values(items, depth + 1)?),
            ExprP::Tuple(items) => Given::Tuple(self.values(items, depth + 1)?),
            ExprP::Identifier(name) => self.name(&name.node.ident, at)?,
            ExprP::Op(left, BinOp::Add, right) => {
                let (left, right) = (self.value(left, depth + 1)?, self.value(right, depth + 1)?);
                return self.add(left, right, at);
            }
            ExprP::ListComprehension(item, first, clauses) => {
                Given::List(self.comprehension(item, first, clauses, depth + 1)?)
            }
            ExprP::FString(string) => {
                let mut text = String::new();
                let mut inside = string.node.expressions.iter();
                let mut characters = string.node.format.node.chars();
                // `{}` stands for the next value, and `{{` and `}}` for a brace.
                while let Some(c) = characters.next() {
                    match (c, matches!(c, '{' | '}').then(|| characters.next())) {
                        (c, None) => text.push(c),
                        ('{', Some(Some('}'))) => {
                            match inside.next().map(|given| self.value(given, depth + 1)) {
                                Some(Ok(Given::Text(given))) => text.push_str(&given),
                                Some(Err(wrong)) => return Err(wrong),
                                Some(Ok(_)) | None => return self.wrong(at, "only texts stand in a text"),
                            }
                        }
                        (c, Some(Some(again))) if c == again => text.push(c),
                        (_, Some(_)) => return self.wrong(at, "a brace in a text is not closed"),
                    }
                    if text.len() > LARGEST_VALUES {
                        return self.wrong(at, "the values of the file are too large");
                    }
                }
                Given::Text(text)
            }
            _ => return self.wrong(at, "only texts, lists, names, `+` and loops over lists are read here"),
        };
        self.keep(at, given)
    }

    fn values(&mut self, items: &[AstExpr], depth: usize) -> Result<Vec<Given>, Wrong> {
        items.iter().map(|item| self.value(item, depth)).collect()
    }

    fn add(&mut self, left: Given, right: Given, at: Span) -> Result<Given, Wrong> {
        let sum = match (left, right) {
            (Given::Text(left), Given::Text(right)) => Given::Text(left + &right),
            (Given::List(mut left), Given::List(right)) => {
                left.extend(right);
                Given::List(left)
            }
            _ => return self.wrong(at, "only two texts or two lists are joined by `+`"),
        };
        self.keep(at, sum)
    }

    fn list(&mut self, expression: &AstExpr, depth: usize) -> Result<Vec<Given>, Wrong> {
        match self.value(expression, depth)? {
            Given::List(items) | Given::Tuple(items) => Ok(items),
            Given::Text(_) | Given::Flag(_) | Given::Nothing => {
                self.wrong(expression.span, "a loop goes over a list")
            }
        }
    }

    /// The values, or the calls, of `[item for name in list]`. Its names are its own: what they stood for before, they
    /// stand for again.
    fn comprehension(
        &mut self,
        item: &AstExpr,
        first: &ForClauseP<AstNoPayload>,
        clauses: &[ClauseP<AstNoPayload>],
        depth: usize,
    ) -> Result<Vec<Given>, Wrong> {
        let items = self.list(&first.over, depth)?;
        let mut names = Vec::new();
        names_of(&first.var, &mut names);
        for clause in clauses {
            if let ClauseP::For(next) = clause {
                names_of(&next.var, &mut names);
            }
        }
        let outside: Vec<Option<Given>> = names.iter().map(|name| self.names.remove(name)).collect();
        let all = self.loops(item, &first.var, items, clauses, depth);
        for (name, given) in names.into_iter().zip(outside).rev() {
            match given {
                Some(given) => self.names.insert(name, given),
                None => self.names.remove(&name),
            };
        }
        all
    }

    fn loops(
        &mut self,
        item: &AstExpr,
        target: &Spanned<AssignTargetP<AstNoPayload>>,
        items: Vec<Given>,
        clauses: &[ClauseP<AstNoPayload>],
        depth: usize,
    ) -> Result<Vec<Given>, Wrong> {
        self.step(item.span, depth)?;
        let mut all = Vec::new();
        for given in items {
            self.assign(target, given)?;
            match (clauses, &item.node) {
                ([], ExprP::Call(function, arguments)) => {
                    self.call(function, arguments, item.span, depth + 1)?;
                    all.push(Given::Nothing);
                }
                ([], _) => all.push(self.value(item, depth + 1)?),
                ([ClauseP::For(next), rest @ ..], _) => {
                    let items = self.list(&next.over, depth + 1)?;
                    all.extend(self.loops(item, &next.var, items, rest, depth + 1)?);
                }
                ([ClauseP::If(condition), ..], _) => {
                    return self
                        .wrong(condition.span, "a loop with a condition is not read: write the rules out");
                }
            }
        }
        Ok(all)
    }
}

/// The names that are set where something is assigned to this.
fn names_of(target: &Spanned<AssignTargetP<AstNoPayload>>, names: &mut Vec<String>) {
    match &target.node {
        AssignTargetP::Identifier(name) => names.push(name.node.ident.clone()),
        AssignTargetP::Tuple(targets) => targets.iter().for_each(|target| names_of(target, names)),
        // Refused where it is assigned.
        AssignTargetP::Index(_) | AssignTargetP::Dot(..) => {}
    }
}
