//! Asks the person at the client: an elicitation (revisions up to 2025-11-25), or a result that requires input, after
//! which the client calls again (2026-07-28).

use super::tell::tell;
use crate::approve::remember::{self, Remember, Scope};
use crate::approve::{Answer, AnswerFuture, Approver, Question, terminal};
use crate::gate::Action;
use crate::present::{printable, shown_workdir};
use crate::session::Session;
use cmdgate_policy::Rule;
use rmcp::model::{
    CancelledNotificationParam, ClientCapabilities, ClientResult, ElicitRequest, ElicitRequestParams,
    ElicitResult, ElicitationAction, ElicitationSchema, EnumSchema, ServerRequest,
};
use rmcp::service::{PeerRequestOptions, RequestContext, RoleServer};
use std::collections::VecDeque;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Arguments longer than this, in bytes, are not put into a form: nobody would see the whole of them.
pub(super) const LONGEST_ASKED: usize = 8 * 1024;
/// As many questions may wait for the client's second call; the oldest is dropped.
const MOST_WAITING: usize = 64;

const ONCE: &str = "allow_once";
const SESSION: &str = "allow_session";
const DENY: &str = "deny";

/// Whether the client can show a form.
pub(super) fn has_forms(capabilities: &ClientCapabilities) -> bool {
    // Before there were modes, a client that declared elicitation meant forms.
    capabilities.elicitation.as_ref().is_some_and(|modes| modes.form.is_some() || modes.url.is_none())
}

/// A question as a form.
#[derive(Debug, Clone)]
pub(super) struct Form {
    message: String,
    /// The rule that `allow_session` keeps; none where the command cannot be remembered.
    rule: Option<Rule>,
}

impl Form {
    fn of(question: Question<'_>, session: &Session) -> Self {
        let Question { request, decision, .. } = question;
        let root = session.gate().root();
        let command = match &request.action {
            Action::Exec(argv) => serde_json::to_string(argv).unwrap_or_default(),
            Action::Shell(_) | Action::Read(_) | Action::Write(_) => request.action.text().into_owned(),
        };
        let rule = remember::propose(decision, session.gate().policy()).ok();
        let mut message = format!(
            "Run this command?\n\n{}\n\nin {} of {}\n{}",
            printable(&command),
            printable(&shown_workdir(root, &decision.workdir)),
            printable(&root.to_string_lossy()),
            printable(&decision.reason),
        );
        if let Some(finding) = decision.findings.first() {
            let _ = write!(message, "\n{}: {}", finding.code.as_str(), printable(&finding.message));
        }
        let _ = write!(message, "\n{}", terminal::touches(&request.action));
        let bounds = terminal::bounds(session.gate().settings());
        let _ = write!(message, "\nsandbox: {}", printable(&bounds));
        if let Some(rule) = &rule {
            let pattern = printable(rule.pattern.as_str());
            let _ = write!(message, "\n\n{SESSION} also lets `{pattern}` pass until the server ends.");
        }
        Self { message, rule }
    }

    /// The form as the client gets it.
    pub(super) fn params(&self) -> ElicitRequestParams {
        let choices: &[&str] = if self.rule.is_some() { &[ONCE, SESSION, DENY] } else { &[ONCE, DENY] };
        let choices = choices.iter().map(|choice| (*choice).to_owned()).collect();
        let schema = ElicitationSchema::builder()
            .required_enum_schema("decision", EnumSchema::builder(choices).build())
            .string_property("feedback", |text| {
                text.description("With deny: what to do instead, for the model")
            });
        ElicitRequestParams::FormElicitationParams {
            meta: None,
            message: self.message.clone(),
            requested_schema: schema.build_unchecked(),
        }
    }

    /// What the person's answer comes to. Whatever is no clear yes is a no.
    pub(super) fn answer(&self, result: &ElicitResult) -> Answer {
        let no = |reason: &str| Answer::Deny { reason: reason.to_owned() };
        match result.action {
            ElicitationAction::Accept => {}
            ElicitationAction::Decline => return no("the person declined"),
            ElicitationAction::Cancel => return no("the person closed the question"),
            _ => return no("the answer is not known"),
        }
        let field = |name: &str| result.content.as_ref()?.get(name)?.as_str();
        match (field("decision"), &self.rule) {
            (Some(ONCE), _) => Answer::yes(),
            (Some(SESSION), Some(rule)) => {
                let rule = rule.clone().because("approved through the MCP client");
                Answer::Approve { modified: None, remember: vec![Remember { rule, scope: Scope::Session }] }
            }
            (Some(DENY), _) => no(field("feedback").unwrap_or("the person said no")),
            (Some(_) | None, _) => no("the person's answer holds no decision that was offered"),
        }
    }
}

/// How a question of one call is answered.
pub(super) enum Way {
    /// By an elicitation, now.
    Elicit,
    /// The client is told to ask and to call again; this call ends.
    Later,
    /// As the person answered before this call was repeated.
    Given(Answer),
    /// Nobody can be asked.
    Nobody,
}

/// Answers the questions of one call.
pub(super) struct Asker<'c> {
    context: &'c RequestContext<RoleServer>,
    session: &'c Session,
    way: Way,
    timeout: Duration,
    /// Whether an answer is waited for.
    asking: &'c AtomicBool,
    later: Mutex<Option<Form>>,
}

impl<'c> Asker<'c> {
    pub(super) fn new(
        context: &'c RequestContext<RoleServer>,
        session: &'c Session,
        way: Way,
        timeout: Duration,
        asking: &'c AtomicBool,
    ) -> Self {
        Self { context, session, way, timeout, asking, later: Mutex::new(None) }
    }

    /// The question that the client is to ask before it calls again.
    pub(super) fn later(self) -> Option<Form> {
        self.later.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    async fn elicit(&self, form: &Form) -> Answer {
        let request = ServerRequest::ElicitRequest(ElicitRequest::new(form.params()));
        let options = PeerRequestOptions::with_timeout(self.timeout);
        let handle = match self.context.peer.send_cancellable_request(request, options).await {
            Ok(handle) => handle,
            Err(error) => {
                tell(&format!("the client cannot be asked: {error}"));
                return Answer::Defer;
            }
        };
        let id = handle.id.clone();
        tokio::select! {
            answered = handle.await_response() => match answered {
                Ok(ClientResult::ElicitResult(result)) => form.answer(&result),
                Ok(other) => {
                    tell(&format!("the client answered an elicitation with {other:?}"));
                    Answer::Defer
                }
                Err(error) => {
                    tell(&format!("nobody answered: {error}"));
                    Answer::Defer
                }
            },
            () = self.context.ct.cancelled() => {
                let params =
                    CancelledNotificationParam::new(Some(id), Some("the call was cancelled".to_owned()));
                let told = self.context.peer.notify_cancelled(params);
                let _ = tokio::time::timeout(Duration::from_secs(1), told).await;
                Answer::Deny { reason: "the call was cancelled".to_owned() }
            }
        }
    }
}

impl Approver for Asker<'_> {
    fn answer<'a>(&'a self, question: Question<'a>) -> AnswerFuture<'a> {
        Box::pin(async move {
            match &self.way {
                Way::Nobody => Answer::Defer,
                Way::Given(answer) => answer.clone(),
                Way::Later => {
                    let form = Form::of(question, self.session);
                    *self.later.lock().unwrap_or_else(PoisonError::into_inner) = Some(form);
                    Answer::Defer
                }
                Way::Elicit => {
                    self.asking.store(true, Ordering::Relaxed);
                    let answer = self.elicit(&Form::of(question, self.session)).await;
                    self.asking.store(false, Ordering::Relaxed);
                    answer
                }
            }
        })
    }
}

/// What a repeated call must repeat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) tool: String,
    pub(super) arguments: String,
    pub(super) run: i64,
}

/// Questions that wait for the client's second call. The client holds nothing but a random name for each: a name that
/// was not given out, is used twice, belongs to another call or is too old gets no answer in.
#[derive(Debug, Default)]
pub(super) struct Waiting(Mutex<VecDeque<(String, Call, Form, Instant)>>);

impl Waiting {
    /// Keeps a question until `end`, and gives its name.
    pub(super) fn add(&self, call: Call, form: Form, end: Instant) -> io::Result<String> {
        let mut bytes = [0; 16];
        File::open("/dev/urandom")?.read_exact(&mut bytes)?;
        let name = format!("{:032x}", u128::from_ne_bytes(bytes));
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.push_back((name.clone(), call, form, end));
        if waiting.len() > MOST_WAITING {
            waiting.pop_front();
        }
        Ok(name)
    }

    /// The question of that name, once.
    pub(super) fn take(&self, name: &str, call: &Call) -> Option<Form> {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = waiting.iter().position(|(given, ..)| given == name)?;
        let (_, asked, form, end) = waiting.remove(at)?;
        (asked == *call && Instant::now() < end).then_some(form)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cmdgate_policy::{Act, Effect};
    use serde_json::{Value, json};

    fn form(remembers: bool) -> Form {
        let rule = Rule::new(Act::Exec, Effect::Allow, "npm test **").unwrap();
        Form { message: String::new(), rule: remembers.then_some(rule) }
    }

    fn result(value: Value) -> ElicitResult {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn only_a_clear_yes_is_a_yes() {
        for (value, approves) in [
            (json!({ "action": "accept", "content": { "decision": "allow_once" } }), true),
            (json!({ "action": "accept", "content": { "decision": "allow_once", "feedback": "x" } }), true),
            (json!({ "action": "accept", "content": { "decision": "allow_session" } }), false),
            (json!({ "action": "accept", "content": { "decision": "deny" } }), false),
            (json!({ "action": "accept", "content": { "decision": true } }), false),
            (json!({ "action": "accept", "content": {} }), false),
            (json!({ "action": "accept", "content": "allow_once" }), false),
            (json!({ "action": "accept" }), false),
            (json!({ "action": "decline", "content": { "decision": "allow_once" } }), false),
            (json!({ "action": "cancel", "content": { "decision": "allow_once" } }), false),
        ] {
            let answer = form(false).answer(&result(value.clone()));
            assert_eq!(matches!(answer, Answer::Approve { .. }), approves, "{value}: {answer:?}");
        }
        let session = json!({ "action": "accept", "content": { "decision": "allow_session" } });
        let Answer::Approve { remember, .. } = form(true).answer(&result(session)) else { panic!() };
        assert_eq!(remember[0].scope, Scope::Session);
        let told = json!({ "action": "accept", "content": { "decision": "deny", "feedback": "use make" } });
        assert_eq!(form(true).answer(&result(told)), Answer::Deny { reason: "use make".to_owned() });
    }

    #[test]
    fn a_name_is_good_once_for_its_own_call_and_for_a_time() {
        let call = |arguments: &str| Call { tool: "shell_run".into(), arguments: arguments.into(), run: 1 };
        let waiting = Waiting::default();
        let soon = Instant::now() + Duration::from_mins(1);
        let name = waiting.add(call("a"), form(false), soon).unwrap();
        assert!(waiting.take("0", &call("a")).is_none());
        assert!(waiting.take(&name, &call("a")).is_some());
        assert!(waiting.take(&name, &call("a")).is_none(), "a second time");
        let name = waiting.add(call("a"), form(false), soon).unwrap();
        assert!(waiting.take(&name, &call("b")).is_none(), "for another call");
        assert!(waiting.take(&name, &call("a")).is_none(), "and it is spent");
        let name = waiting.add(call("a"), form(false), Instant::now()).unwrap();
        assert!(waiting.take(&name, &call("a")).is_none(), "too late");
        let first = waiting.add(call("a"), form(false), soon).unwrap();
        for _ in 0..MOST_WAITING {
            waiting.add(call("a"), form(false), soon).unwrap();
        }
        assert!(waiting.take(&first, &call("a")).is_none(), "too many");
    }
}
