//! The provider that speaks HTTP, against a server that behaves well and badly.

use cmdgate_harness::agent::{Message, OfferedTool, Provider as _, ProviderError, Turn};
use cmdgate_harness::tools::TOOLS;
use cmdgate_harness::{ApproveAll, OpenRouter, Policy, RunError, RunOutcome, Store, TaskContract, run_with};
use cmdgate_policy::Layer;
use cmdgate_tests::Project;
use cmdgate_tests::model::{
    Behaviour, ModelServer, answer, calls, dripping, huge, raw, says, silent, status,
};
use serde_json::json;
use std::num::NonZeroU64;
use std::time::{Duration, Instant};

const KEY: &str = "sk-canary-0815";

/// A model at this server that waits little.
fn model(server: &ModelServer) -> OpenRouter {
    OpenRouter::new(KEY)
        .unwrap()
        .with_base_url(&server.url())
        .unwrap()
        .with_model("some/model")
        .with_attempts(3, Duration::from_millis(20))
        .with_timeouts(Duration::from_secs(2), Duration::from_secs(2), Duration::from_secs(20))
}

async fn next(model: &OpenRouter) -> Result<Turn, ProviderError> {
    let conversation = [Message::User { text: "mend it".into() }];
    let tools = TOOLS.iter().map(|tool| OfferedTool {
        name: tool.name,
        description: tool.description,
        parameters: tool.parameters(),
    });
    let turn = model.next(&conversation, &tools.collect::<Vec<_>>()).await;
    if let Err(error) = &turn {
        assert!(!format!("{error} {error:?}").contains(KEY), "{error}");
    }
    turn
}

/// What a server with this script comes to, and how often it was asked.
async fn outcome(script: Vec<Behaviour>) -> (Result<Turn, ProviderError>, usize) {
    let server = ModelServer::start(script);
    let turn = next(&model(&server)).await;
    (turn, server.asked().len())
}

// contract: P14
#[tokio::test]
async fn a_question_is_put_in_the_usual_form_and_its_answer_read() {
    let server = ModelServer::start([calls("exec", r#"{"argv":["ls"]}"#)]);
    let turn = next(&model(&server)).await.unwrap();
    assert_eq!(
        (turn.calls[0].name.as_str(), turn.calls[0].arguments.as_str()),
        ("exec", r#"{"argv":["ls"]}"#)
    );
    assert_eq!(turn.tokens, 10);
    let asked = &server.asked()[0];
    assert!(asked.head.starts_with("POST /v1/chat/completions HTTP/1.1"), "{}", asked.head);
    assert!(asked.head.to_lowercase().contains(&format!("authorization: bearer {KEY}")), "{}", asked.head);
    assert_eq!(asked.body["model"], "some/model");
    assert_eq!(asked.body["messages"][0], json!({ "role": "user", "content": "mend it" }));
    let exec = &asked.body["tools"][1]["function"];
    assert_eq!((&exec["name"], &exec["parameters"]["required"][0]), (&json!("exec"), &json!("argv")));
}

// contract: P14
#[tokio::test]
async fn what_passes_is_tried_again() {
    let cut = || raw("HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n{\"choices\":[{\"message\"");
    let passing: [(&str, Behaviour); 8] = [
        ("429", status(429, "", r#"{"error":{"message":"slow down"}}"#)),
        ("408", status(408, "", "")),
        ("500", status(500, "", "oops")),
        ("503", status(503, "retry-after: Wed, 21 Oct 2015 07:28:00 GMT\r\n", "")),
        ("cut", cut()),
        ("no answer at all", raw("")),
        ("empty answer", answer(&json!({ "content": "" }))),
        ("an error in a good answer", status(200, "", r#"{"error":{"code":502,"message":"upstream"}}"#)),
    ];
    for (name, bad) in passing {
        let (turn, asked) = outcome(vec![bad, says("well")]).await;
        assert_eq!((turn.unwrap().text.as_str(), asked), ("well", 2), "{name}");
    }
}

// contract: P14
#[tokio::test]
async fn the_pause_that_the_server_asks_for_is_kept_and_not_without_bound() {
    let begun = Instant::now();
    let (turn, _) = outcome(vec![status(429, "retry-after: 1\r\n", ""), says("well")]).await;
    assert!(turn.is_ok() && begun.elapsed() >= Duration::from_secs(1), "{turn:?} {:?}", begun.elapsed());
    // A minute at most, and this one has not even that: it is said at once.
    let begun = Instant::now();
    let (turn, asked) =
        outcome(vec![status(429, "retry-after: 86400\r\n", r#"{"error":"daily limit"}"#)]).await;
    let error = turn.unwrap_err();
    assert!(matches!(&error, ProviderError::Status { status: 429, attempts: 1, .. }), "{error:?}");
    assert!(error.to_string().contains("daily limit") && asked == 1, "{error}");
    assert!(begun.elapsed() < Duration::from_secs(10));
}

// contract: P14
#[tokio::test]
async fn what_does_not_pass_ends_with_its_cause() {
    let (turn, asked) = outcome((0..9).map(|_| status(500, "", "oops")).collect()).await;
    let error = turn.unwrap_err();
    assert!(
        matches!(&error, ProviderError::Status { status: 500, attempts: 3, .. }) && asked == 3,
        "{error:?}"
    );
    assert!(error.to_string().contains("oops"), "{error}");

    let page = "<html><body>Welcome to the captive portal</body></html>";
    for (name, bad, named) in [
        ("nonsense", status(200, "", page), "captive portal"),
        ("cut in the right place", status(200, "", r#"{"choices":[{"message":"#), "not JSON"),
        (
            "wrong types",
            status(200, "", r#"{"choices":[{"message":{"content":7}}]}"#),
            "content` is a number",
        ),
        ("deep", status(200, "", &"[".repeat(100_000)), "not JSON"),
        ("no HTTP", raw("SSH-2.0-OpenSSH_9.6\r\n\r\n"), "no answer"),
        ("endless headers", raw(format!("HTTP/1.1 200 OK\r\n{}", "a: b\r\n".repeat(100_000))), "no answer"),
    ] {
        let (turn, asked) = outcome(vec![bad, says("well")]).await;
        let error = turn.unwrap_err();
        assert!(matches!(error, ProviderError::Nonsense { .. }), "{name}: {error:?}");
        assert!(error.to_string().contains(named) && asked == 1, "{name}: {error}");
    }

    let (turn, asked) = outcome(vec![status(401, "", r#"{"error":{"message":"who are you"}}"#)]).await;
    let error = turn.unwrap_err().to_string();
    assert!(error.contains("who are you") && error.contains("OPENROUTER_API_KEY") && asked == 1, "{error}");
    let (turn, _) = outcome(vec![status(404, "", "\u{1b}[2Jno such model")]).await;
    let error = turn.unwrap_err().to_string();
    assert!(error.contains("OPENROUTER_MODEL") && !error.contains('\u{1b}'), "{error}");

    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let nobody = OpenRouter::new(KEY).unwrap().with_base_url(&format!("http://{closed}/v1")).unwrap();
    let error = next(&nobody.with_attempts(2, Duration::ZERO)).await.unwrap_err();
    assert!(matches!(&error, ProviderError::Transport { attempts: 2, .. }), "{error:?}");
    assert!(error.to_string().contains("refused"), "{error}");
}

// contract: P14
#[tokio::test]
async fn a_redirect_does_not_take_the_key_elsewhere() {
    for code in [301, 302, 303, 307, 308] {
        let elsewhere = ModelServer::start([says("give me your key")]);
        let location = format!("location: {}/chat/completions\r\n", elsewhere.url());
        let (turn, asked) = outcome(vec![status(code, &location, ""), says("well")]).await;
        let error = turn.unwrap_err();
        assert!(matches!(&error, ProviderError::Redirect { .. }) && asked == 1, "{code}: {error:?}");
        assert!(error.to_string().contains(&elsewhere.url()), "{error}");
        assert!(elsewhere.asked().is_empty(), "{code}");
    }
}

// contract: P14
#[tokio::test]
async fn an_answer_without_end_is_not_read_to_its_end() {
    let begun = Instant::now();
    let (turn, asked) = outcome(vec![huge(2 << 30), says("well")]).await;
    assert!(matches!(turn, Err(ProviderError::TooLarge { .. })) && asked == 1, "{turn:?}");
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
}

// contract: P14
#[tokio::test]
async fn a_server_that_is_slow_or_never_answers_is_given_up() {
    let server = ModelServer::start((0..3).map(|_| silent(Duration::from_secs(30))));
    let fast =
        |total| model(&server).with_timeouts(Duration::from_millis(300), Duration::from_millis(300), total);
    let begun = Instant::now();
    let error = next(&fast(Duration::from_secs(10))).await.unwrap_err();
    assert!(matches!(&error, ProviderError::Timeout { attempts: 3, .. }), "{error:?}");
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    // Every byte comes in time, and the whole does not.
    let server = ModelServer::start((0..9).map(|_| dripping(Duration::from_millis(50))));
    let drip = model(&server).with_timeouts(
        Duration::from_millis(300),
        Duration::from_millis(300),
        Duration::from_secs(1),
    );
    let begun = Instant::now();
    let error = next(&drip).await.unwrap_err();
    assert!(matches!(&error, ProviderError::Timeout { .. }), "{error:?}");
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}

// contract: P14
#[test]
fn a_run_whose_time_is_up_does_not_wait_for_the_server() {
    let project = Project::new();
    let server = ModelServer::start([silent(Duration::from_secs(60))]);
    let model = OpenRouter::new(KEY).unwrap().with_base_url(&server.url()).unwrap();
    let begun = Instant::now();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let contract = TaskContract::workspace("x", project.root()).with_time_budget(Duration::from_millis(500));
    let store = Store::open(project.scratch().join("runs.db")).unwrap();
    let result = runtime.block_on(run_with(&contract, &model, &store, &Policy::default(), &ApproveAll));
    drop(runtime);
    assert_eq!(result.unwrap().outcome, RunOutcome::OutOfTime);
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
}

// contract: P14
#[tokio::test]
async fn calls_with_malformed_arguments_are_told_to_the_model_and_the_run_goes_on() {
    let project = Project::new();
    let server = ModelServer::start([
        calls("exec", r#"{"argv": ["#),
        calls("exec", r#"["ls"]"#),
        calls("exec", r#"{"argv": "ls -l"}"#),
        calls("launch", "{}"),
        calls("read_file", r#"{"path": "a.txt"}"#),
        says("alpha is in it"),
    ]);
    let contract = TaskContract::workspace("what is in a.txt?", project.root());
    let store = Store::open(project.scratch().join("runs.db")).unwrap();
    let result = run_with(&contract, &model(&server), &store, &Policy::default(), &ApproveAll).await.unwrap();
    assert_eq!((result.outcome, result.steps, result.tokens), (RunOutcome::Done, 6, 60));
    let asked = server.asked();
    let told = |at: usize| {
        let messages = asked[at].body["messages"].as_array().unwrap();
        messages.last().unwrap()["content"].as_str().unwrap().to_owned()
    };
    for at in 1..5 {
        assert!(told(at).starts_with("VALIDATION_ERROR"), "{at}: {}", told(at));
    }
    assert!(told(5).contains("alpha"), "{}", told(5));
}

/// The usual and the longest time of a tool, as a question tells the model of them.
fn times(question: &serde_json::Value, tool: &str) -> (u64, u64) {
    let tools = question["tools"].as_array().unwrap();
    let tool = tools.iter().find(|offered| offered["function"]["name"] == tool).unwrap();
    let timeout = &tool["function"]["parameters"]["properties"]["timeoutMs"];
    (timeout["default"].as_u64().unwrap(), timeout["maximum"].as_u64().unwrap())
}

// contract: P10 P14 H5
#[tokio::test]
async fn a_model_is_told_the_time_limits_that_hold() {
    let project = Project::new();
    let asked = async |policy: Policy, time: u64, limit: Option<Duration>| {
        let call = json!({ "command": "ls", "timeoutMs": time }).to_string();
        let server = ModelServer::start([calls("shell", &call), says("done")]);
        let mut contract = TaskContract::workspace("look", project.root());
        if let Some(limit) = limit {
            contract = contract.with_exec_timeout(limit);
        }
        let store = Store::open(project.scratch().join("runs.db")).unwrap();
        run_with(&contract, &model(&server), &store, &policy, &ApproveAll).await.unwrap();
        server.asked().into_iter().map(|asked| asked.body).collect::<Vec<_>>()
    };
    let refused = |question: &serde_json::Value| {
        let last = question["messages"].as_array().unwrap().last().unwrap();
        last["content"].as_str().unwrap().starts_with("VALIDATION_ERROR")
    };
    let policy = || {
        let mut layer = Layer::new("app");
        layer.settings.limits.timeout_ms = NonZeroU64::new(4000);
        layer.settings.limits.max_timeout_ms = NonZeroU64::new(8000);
        Policy::default().with_layer(layer)
    };
    let questions = asked(policy(), 8000, Some(Duration::from_secs(77))).await;
    assert_eq!(times(&questions[0], "shell"), (4000, 8000));
    assert_eq!(times(&questions[0], "exec"), (77_000, 77_000));
    assert!(!refused(&questions[1]), "{}", questions[1]);
    let questions = asked(policy(), 8001, None).await;
    assert_eq!(times(&questions[0], "exec"), (900_000, 900_000));
    assert!(refused(&questions[1]), "{}", questions[1]);
}

// contract: P14
#[tokio::test]
async fn the_key_reaches_neither_error_nor_trace() {
    let project = Project::new();
    let server = ModelServer::start([
        calls("exec", &format!(r#"{{"argv": ["echo", "{KEY}"]}}"#)),
        status(403, "", &format!(r#"{{"error":{{"message":"{KEY} is not welcome"}}}}"#)),
    ]);
    let model = model(&server);
    assert!(!format!("{model:?} {model:#?}").contains(KEY));
    let path = project.scratch().join("traces/runs.db");
    let contract = TaskContract::workspace("x", project.root());
    let store = Store::open(&path).unwrap();
    let error = run_with(&contract, &model, &store, &Policy::permissive(), &ApproveAll).await.unwrap_err();
    assert!(matches!(error, RunError::Provider(_)), "{error:?}");
    let shown = format!("{error} {error:?}");
    assert!(shown.contains("[redacted: key] is not welcome") && !shown.contains(KEY), "{shown}");
    drop(store);
    for file in std::fs::read_dir(path.parent().unwrap()).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        assert!(!String::from_utf8_lossy(&bytes).contains(KEY));
    }
}
