//! What the command line means.
//!
//! Environment variables are a property of a process: tests that need some run
//! this test program again, with them and with the test that prints what it read.

use std::process::{Command as Process, Output};

use clap::CommandFactory;

use super::*;

fn run(flags: &[&str]) -> Result<RunArgs, String> {
    let words = std::iter::once(&"task-operator").chain(flags);
    match Cli::try_parse_from(words).map_err(|error| error.to_string())?.into_command() {
        Command::Run(args) => Ok(*args),
        _ => Err("crd".to_owned()),
    }
}

/// The flags, after a word that keeps them apart from those of the test program.
const FLAGS: &str = "TESTED_FLAGS";

/// Not a test of its own: prints what the flags in `TESTED_FLAGS` and the environment mean.
#[test]
fn printed_in_a_process_of_its_own() {
    if let Ok(flags) = std::env::var(FLAGS) {
        let flags: Vec<&str> = flags.split_whitespace().collect();
        match run(&flags) {
            Ok(args) => println!("{args:?} {:?}", args.cluster.namespaces()),
            Err(error) => println!("refused: {error}"),
        }
    }
}

fn with_environment(environment: &[(&str, &str)], flags: &str) -> String {
    let Output { stdout, status, .. } = Process::new(std::env::current_exe().unwrap())
        .args(["--exact", "cli::tests::printed_in_a_process_of_its_own", "--nocapture"])
        .env_remove("WATCH_NAMESPACE")
        .envs(environment.iter().copied())
        .env(FLAGS, flags)
        .output()
        .unwrap();
    assert!(status.success());
    String::from_utf8(stdout).unwrap()
}

#[test]
fn the_definition_of_the_command_line_is_sound() {
    Cli::command().debug_assert();
}

#[test]
fn without_a_subcommand_it_runs_with_defaults() {
    for flags in [&[][..], &["run"]] {
        let args = run(flags).unwrap();
        assert_eq!(args.reconcile.max_concurrent_reconciles, 10);
        assert_eq!(args.reconcile.shutdown_timeout, Duration::from_secs(30));
        assert_eq!(args.serve.metrics_bind_address.to_string(), ":8080");
        assert_eq!(args.serve.health_probe_bind_address.to_string(), ":8081");
        assert!(args.serve.metrics_per_task);
        assert_eq!((args.log.level.as_str(), args.log.format), ("info", LogFormat::Text));
    }
}

#[test]
fn flags_are_read_with_and_without_run() {
    let flags = [
        "--shutdown-timeout",
        "1m30s",
        "--metrics-per-task=false",
        "--log-level",
        "info,task_operator=debug",
    ];
    for words in [flags.to_vec(), [&["run"][..], &flags].concat()] {
        let args = run(&words).unwrap();
        assert_eq!(args.reconcile.shutdown_timeout, Duration::from_secs(90));
        assert_eq!(args.log.level, "info,task_operator=debug");
        assert!(!args.serve.metrics_per_task);
    }
    assert!(run(&["--metrics-per-task"]).unwrap().serve.metrics_per_task);
}

#[test]
fn a_subcommand_takes_no_flags_of_run() {
    assert!(matches!(Cli::try_parse_from(["task-operator", "crd"]).unwrap().into_command(), Command::Crd(_)));
    Cli::try_parse_from(["task-operator", "crd", "--log-level", "info"]).unwrap_err();
    Cli::try_parse_from(["task-operator", "--log-level", "info", "crd"]).unwrap_err();
}

#[test]
fn namespaces_may_be_repeated_and_listed() {
    let args =
        run(&["--watch-namespace", "b, a,", "--watch-namespace", "c", "--watch-namespace", "a"]).unwrap();
    assert_eq!(args.cluster.namespaces(), ["a", "b", "c"]);
}

#[test]
fn what_kubebuilder_calls_it_is_understood_and_not_shown() {
    let flags = ["--metrics-addr=0", "--health-addr=:1", "--zap-log-level=debug", "--zap-encoder=console"];
    let args = run(&flags).unwrap();
    assert_eq!(args.serve.metrics_bind_address, BindAddress::Off);
    assert_eq!(args.serve.health_probe_bind_address, BindAddress::Any(1));
    assert_eq!((args.log.level.as_str(), args.log.format), ("debug", LogFormat::Text));
    let help = Cli::command().render_long_help().to_string();
    for flag in flags {
        let (name, _) = flag.split_once('=').unwrap();
        assert!(!help.contains(name), "{name} is shown");
    }
}

#[test]
fn a_wrong_value_is_refused_with_the_name_of_its_flag() {
    for (flag, value) in [
        ("--max-concurrent-reconciles", "0"),
        ("--max-concurrent-reconciles", "1001"),
        ("--max-concurrent-reconciles", "many"),
        ("--metrics-bind-address", "nowhere"),
        ("--health-probe-bind-address", ":99999"),
        ("--watch-namespace", "kube_system"),
        ("--watch-namespace", "a,-b"),
        ("--log-format", "xml"),
        ("--log-level", "loud"),
        ("--log-level", "info,web=loud"),
        ("--shutdown-timeout", "soon"),
        ("--shutdown-timeout", "30"),
        ("--shutdown-timeout", "2h"),
        ("--shutdown-timeout", "1s ago"),
        ("--webhook-cert-validity", "1s"),
        ("--webhook-secret-name", "A"),
        ("--webhook-service-name", "a..b"),
        ("--notify-url", "sink:80"),
        ("--notify-url", "ftp://sink/"),
        ("--notify-url", "http://"),
        ("--notify-url", "https://me:secret@sink/"),
        ("--notify-url", "https://sink/#part"),
        ("--notify-mode", "batched"),
        ("--queue-workers", "0"),
        ("--queue-capacity", "0"),
        ("--queue-capacity", "1000001"),
        ("--farewell-timeout", "2h"),
    ] {
        let error = run(&["run", flag, value]).unwrap_err();
        assert!(error.contains(flag), "{flag} {value}: {error}");
    }
    assert!(run(&["--metrics-per-task=perhaps"]).unwrap_err().contains("--metrics-per-task"));
}

#[test]
fn every_flag_reads_the_variable_of_its_name_and_help_shows_its_default() {
    let command = Cli::command();
    let own = |id: &str| !["help", "version"].contains(&id);
    for flag in command.get_arguments().filter(|flag| own(flag.get_id().as_str())) {
        let name = flag.get_long().unwrap();
        let variable = format!("TASK_OPERATOR_{}", name.replace('-', "_").to_uppercase());
        assert_eq!(flag.get_env().and_then(|name| name.to_str()), Some(variable.as_str()));
        let is_optional = [
            "kubeconfig",
            "watch-namespace",
            "leader-election-namespace",
            "webhook-cert-dir",
            "webhook-dns-name",
            "notify-url",
            "notify-secret-file",
        ]
        .contains(&name);
        assert!(is_optional || !flag.get_default_values().is_empty(), "--{name} has no default");
        assert!(flag.get_help().is_some() && flag.get_help_heading().is_some(), "--{name}");
    }
}

#[test]
fn variables_are_read_and_flags_win() {
    let environment = [
        ("TASK_OPERATOR_LOG_LEVEL", "warn"),
        ("TASK_OPERATOR_METRICS_PER_TASK", "false"),
        ("TASK_OPERATOR_SHUTDOWN_TIMEOUT", "5s"),
        ("TASK_OPERATOR_WATCH_NAMESPACE", "x,y"),
        ("WATCH_NAMESPACE", "z"),
    ];
    for flags in ["--log-level error", "run --log-level error"] {
        let read = with_environment(&environment, flags);
        for expected in
            ["metrics_per_task: false", "shutdown_timeout: 5s", "level: \"error\"", "[\"x\", \"y\"]\n"]
        {
            assert!(read.contains(expected), "{flags}: no {expected} in {read}");
        }
    }
}

#[test]
fn a_wrong_variable_is_refused_with_the_name_of_its_flag() {
    let read = with_environment(&[("TASK_OPERATOR_MAX_CONCURRENT_RECONCILES", "0")], "");
    assert!(read.contains("refused: ") && read.contains("--max-concurrent-reconciles"), "{read}");
}

#[test]
fn flags_of_notifications_go_together() {
    let check = |flags: &[&str]| run(flags).unwrap().notify.check();
    assert_eq!(check(&[]), Ok(()));
    assert_eq!(
        check(&["--notify-url=http://sink", "--notify-secret-file=x", "--notify-mode=binary"]),
        Ok(())
    );
    assert_eq!(check(&["--queue-workers=4", "--queue-capacity=4"]), Ok(()));
    for (flags, flag) in [
        (&["--notify-secret-file=x"][..], "--notify-secret-file"),
        (&["--queue-workers=5", "--queue-capacity=4"], "--queue-workers"),
        (&["--farewell-timeout=0s"], "--farewell-timeout"),
    ] {
        assert!(check(flags).unwrap_err().starts_with(flag), "{flags:?}");
    }
    let sink = |flags: &[&str]| run(flags).unwrap().notify.sink().map(|sink| sink.is_some());
    assert!(!sink(&[]).unwrap());
    assert!(sink(&["--notify-url=http://sink:8080/hook?a=b"]).unwrap());
    let error = sink(&["--notify-url=http://sink", "--notify-secret-file=/nowhere/at/all"]).unwrap_err();
    assert!(format!("{error:#}").starts_with("--notify-secret-file: /nowhere/at/all"), "{error:#}");
}

#[test]
fn the_lifecycle_managers_list_of_namespaces_is_the_default() {
    for (list, flags, expected) in [
        ("b,a", "", "[\"a\", \"b\"]\n"),
        ("", "", "[]\n"),
        ("b,a", "--watch-namespace c", "[\"c\"]\n"),
        ("B", "", "--watch-namespace"),
    ] {
        let read = with_environment(&[("WATCH_NAMESPACE", list)], flags);
        assert!(read.contains(expected), "{list} {flags}: {read}");
    }
}

#[test]
fn no_variable_gets_in_the_way_of_a_subcommand() {
    let read = with_environment(&[("TASK_OPERATOR_LOG_LEVEL", "debug"), ("WATCH_NAMESPACE", "a")], "crd");
    assert!(read.contains("refused: crd\n"), "{read}");
}

fn crd(flags: &[&str]) -> Result<CrdArgs, String> {
    let words = ["task-operator", "crd"].iter().chain(flags);
    match Cli::try_parse_from(words).map_err(|error| error.to_string())?.into_command() {
        Command::Crd(args) => Ok(args),
        _ => Err("another".to_owned()),
    }
}

#[test]
fn the_definition_has_a_webhook_where_one_is_named() {
    assert_eq!(crd(&[]).unwrap().webhook(), None);
    assert_eq!(
        crd(&["--url", "https://127.0.0.1:9443/"]).unwrap().webhook(),
        Some(Webhook::Url("https://127.0.0.1:9443".to_owned()))
    );
    let service = |port| {
        let (namespace, name) = ("task-system".to_owned(), "task-operator-webhook".to_owned());
        Some(Webhook::Service { namespace, name, port })
    };
    let at = |text: &str| crd(&["--service", text]).unwrap().webhook();
    assert_eq!(at("task-system/task-operator-webhook"), service(443));
    assert_eq!(at("task-system/task-operator-webhook:9443"), service(9443));
    for (flag, wrong) in [
        ("--url", "http://127.0.0.1:9443"),
        ("--url", "https://127.0.0.1:9443/convert"),
        ("--url", "https://host?x"),
        ("--url", "https://"),
        ("--service", "webhook"),
        ("--service", "/webhook"),
        ("--service", "system/webhook:0"),
        ("--service", "system/webhook:x"),
        ("--service", "System/webhook"),
    ] {
        let told = crd(&[flag, wrong]).unwrap_err();
        assert!(told.contains(flag), "{flag} {wrong}: {told}");
    }
    assert!(crd(&["--url", "https://a", "--service", "a/b"]).is_err());
}

#[test]
fn certificates_are_looked_at_before_they_are_printed() {
    let directory = tempfile::TempDir::new().unwrap();
    let file = directory.path().join("ca.crt");
    let path = file.to_str().unwrap();
    let ca = |flags: &[&str]| crd(flags).unwrap().ca().map_err(|error| format!("{error:#}"));
    assert_eq!(ca(&["--url", "https://a"]), Ok(None));
    assert!(ca(&["--ca", path]).unwrap_err().contains("--url"));
    assert!(ca(&["--url", "https://a", "--ca", path]).unwrap_err().contains(path));
    std::fs::write(&file, "no certificate").unwrap();
    assert!(ca(&["--url", "https://a", "--ca", path]).unwrap_err().contains("PEM"));
    std::fs::write(&file, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n").unwrap();
    assert!(ca(&["--url", "https://a", "--ca", path]).unwrap().is_some());
}
