//! The programs of source b, as they are written there but for their paths: they compile after one line, and work.

use cmdgate_tests::Project;
use cmdgate_tests::model::{ModelServer, calls, says};
use serde_json::json;

mod first {
    use cmdgate_harness::io_harness;
    use std::path::Path;

    use io_harness::{ApproveAll, OpenRouter, Policy, Store, TaskContract, Verification, run_with};
    #[rustfmt::skip]
    pub async fn demo(repo: &Path, db: &Path) -> io_harness::Result<()> {
        let contract = TaskContract::workspace(
            "the test suite is failing; find out why and fix it",
            repo,
            // The gate is the project's own command, in whatever language it is written.
            Verification::Command { argv: vec!["npm".into(), "test".into()], expect_exit: 0 },
        );
        // What the agent may run, decided before it runs anything.
        let policy = Policy::permissive()
            .layer("app")
            .allow_exec("npm*")
            .allow_exec("node*")
            .deny_exec("rm*")
            .deny_exec("git push*");
        let result = run_with(&contract, &OpenRouter::from_env()?, &Store::open(db)?,
            &policy, &ApproveAll).await?;
        let _ = result;
        Ok(()) }
}

mod second {
    use cmdgate_harness::io_harness;

    use io_harness::{Act, Effect, Policy};
    pub fn demo() {
        let policy = Policy::permissive().layer("ops").allow_exec("cargo*").deny_exec("cargo publish*");
        assert_eq!(policy.check(Act::Exec, "cargo test").effect, Effect::Allow);
        assert_eq!(policy.check(Act::Exec, "cargo publish --token x").effect, Effect::Deny);
    }
}

/// The same in this crate's own names.
mod idiom {
    use cmdgate_harness::{
        ApproveAll, OpenRouter, Policy, Result, RunResult, Store, TaskContract, Verification, run_with,
    };
    use std::path::Path;

    pub async fn demo(repo: &Path, db: &Path) -> Result<RunResult> {
        let contract = TaskContract::workspace("the test suite is failing; find out why and fix it", repo)
            .with_verification(Verification::Command {
                argv: vec!["npm".into(), "test".into()],
                expect_exit: 0,
            });
        let policy =
            Policy::permissive().layer("app").allow_exec("npm*").deny_exec("rm*").deny_exec("git push*");
        run_with(&contract, &OpenRouter::from_env()?, &Store::open(db)?, &policy, &ApproveAll).await
    }
}

/// Sets what the programs take from their environment.
fn ask_here(url: &str) {
    for (name, value) in [
        ("OPENROUTER_API_KEY", "sk-canary-77"),
        ("OPENROUTER_MODEL", "some/model"),
        ("OPENROUTER_BASE_URL", url),
    ] {
        #[expect(
            unsafe_code,
            reason = "one test of this program sets them, and nothing reads them meanwhile"
        )]
        // SAFETY: the other test of this program neither reads nor writes the environment.
        unsafe {
            std::env::set_var(name, value);
        }
    }
}

// contract: P2 P13 P14
#[tokio::test]
async fn the_first_program_mends_a_failing_project() {
    for own_names in [false, true] {
        let project = Project::new();
        project.write("package.json", r#"{ "scripts": { "test": "node test.js" } }"#);
        project.write("sum.js", "module.exports = (a, b) => a - b;\n");
        project.write(
            "test.js",
            "if (require('./sum')(2, 3) !== 5) { console.error('wrong'); process.exit(1); }\n",
        );
        let mend = json!({ "path": "sum.js", "content": "module.exports = (a, b) => a + b;\n" });
        let server = ModelServer::start([
            calls("exec", r#"{"argv": ["npm", "test"]}"#),
            calls("exec", r#"{"argv": ["rm", "test.js"]}"#),
            calls("exec", r#"{"argv": ["git", "push", "--force"]}"#),
            calls("write_file", &mend.to_string()),
            says("It was a difference."),
        ]);
        ask_here(&server.url());
        let db = project.scratch().join("runs.db");
        if own_names {
            let result = idiom::demo(&project.root(), &db).await.unwrap();
            assert_eq!(result.outcome, cmdgate_harness::RunOutcome::Done);
        } else {
            first::demo(&project.root(), &db).await.unwrap();
        }
        let asked = server.asked();
        assert_eq!(asked.len(), 5);
        let told =
            |at: usize| asked[at].body["messages"].as_array().unwrap().last().unwrap()["content"].to_string();
        assert!(told(1).contains("wrong") && told(1).contains("Exit code: 1"), "{}", told(1));
        assert!(told(2).contains("PERMISSION_DENIED") && told(2).contains("rm*"), "{}", told(2));
        assert!(told(3).contains("PERMISSION_DENIED") && told(3).contains("git push*"), "{}", told(3));
        let sum = std::fs::read_to_string(project.root().join("sum.js")).unwrap();
        assert!(sum.contains("a + b"), "{sum}");
        // What was refused is one query, what ran another.
        let connection = rusqlite::Connection::open(&db).unwrap();
        let refused: Vec<(String, String)> = connection
            .prepare(
                "SELECT rule, layer FROM policy_events WHERE effect = 'deny' AND act = 'exec' ORDER BY id",
            )
            .unwrap()
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap();
        let of_app = |rule: &str| (rule.to_owned(), "app".to_owned());
        assert_eq!(refused, [of_app("rm*"), of_app("git push*")]);
        let outcome: String = connection.query_row("SELECT outcome FROM runs", [], |row| row.get(0)).unwrap();
        assert_eq!(outcome, "done");
    }
}

// contract: P2 P6
#[test]
fn the_second_program_holds() {
    second::demo();
}
