//! `/healthz` and `/readyz`, as the API server has them.
//!
//! - `ok` and 200 if all checks pass, else 500 and a line for each check
//! - `?verbose` lists every check in any case
//! - `?exclude=NAME` leaves a check out; may be repeated
//! - `/readyz/NAME` asks for one check
//!
//! What a probe finds is logged when it is not what the last one found.

use std::fmt::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use actix_web::dev::Server;
use actix_web::http::KeepAlive;
use actix_web::web::{Data, Path, ServiceConfig};
use actix_web::{HttpRequest, HttpResponse};

use super::BindAddress;
use super::health::{Finding, Health, Question};
use super::server::{self, Settings, plain};

const SETTINGS: Settings = Settings {
    flag: "--health-probe-bind-address",
    workers: 1,
    connections: 256,
    keep_alive: KeepAlive::Disabled,
};
const PATHS: &str = "/healthz\n/healthz/CHECK\n/readyz\n/readyz/CHECK\n";

/// Serves the probes on `address`; none if that is off.
///
/// # Errors
/// If the address cannot be had.
pub fn serve_probes(address: &BindAddress, health: Health) -> anyhow::Result<Option<(Server, SocketAddr)>> {
    let live = Probe::new(&health, "healthz", Question::Live);
    let ready = Probe::new(&health, "readyz", Question::Ready);
    server::serve(SETTINGS, address, None, move |routes| {
        routes.service(server::index(PATHS));
        for probe in [&live, &ready] {
            probe.clone().configure(routes);
        }
    })
}

/// One of the two paths.
#[derive(Clone)]
struct Probe {
    health: Health,
    path: &'static str,
    question: Question,
    /// What the last probe found.
    failing: Arc<AtomicBool>,
}

impl Probe {
    fn new(health: &Health, path: &'static str, question: Question) -> Self {
        Self { health: health.clone(), path, question, failing: Arc::default() }
    }

    fn configure(self, routes: &mut ServiceConfig) {
        let (all, one) = (format!("/{}", self.path), format!("/{}/{{check}}", self.path));
        let probe = Data::new(self);
        routes
            .service(server::page(&all, all_checks).app_data(probe.clone()))
            .service(server::page(&one, one_check).app_data(probe));
    }

    /// Logs a change.
    fn announce(&self, failed: bool, report: &str) {
        if self.failing.swap(failed, Ordering::Relaxed) == failed {
            return;
        }
        let path = self.path;
        if failed {
            let reasons: Vec<&str> = report.lines().filter(|line| line.starts_with("[-]")).collect();
            tracing::warn!(error = reasons.join("; "), "/{path} fails");
        } else {
            tracing::info!("/{path} passes again");
        }
    }
}

async fn all_checks(request: HttpRequest, probe: Data<Probe>) -> HttpResponse {
    let mut verbose = false;
    let mut excluded = Vec::new();
    for part in request.query_string().split('&') {
        match part.split_once('=').unwrap_or((part, "")) {
            ("verbose", _) => verbose = true,
            ("exclude", name) => excluded.push(name),
            _ => {}
        }
    }
    let mut findings = probe.health.findings(probe.question);
    findings.retain(|finding| !excluded.contains(&finding.name));
    let failed = findings.iter().any(Finding::fails);
    let report = report(probe.path, &findings, failed);
    if excluded.is_empty() {
        probe.announce(failed, &report);
    }
    plain(match (failed, verbose) {
        (true, _) => HttpResponse::InternalServerError().body(report),
        (false, true) => HttpResponse::Ok().body(report),
        (false, false) => HttpResponse::Ok().body("ok"),
    })
}

/// Who asks for a check gets its result, whatever depends on it.
async fn one_check(name: Path<String>, probe: Data<Probe>) -> HttpResponse {
    plain(match probe.health.finding(probe.question, &name) {
        Some(Finding { result: Ok(()), .. }) => HttpResponse::Ok().body("ok"),
        Some(Finding { name, result: Err(reason), .. }) => {
            HttpResponse::InternalServerError().body(format!("[-]{name} failed: {reason}\n"))
        }
        None => HttpResponse::NotFound().body("404 no such check\n"),
    })
}

fn report(path: &str, findings: &[Finding], failed: bool) -> String {
    let mut text = String::new();
    for Finding { name, informational, result } in findings {
        let note = if *informational { " (not required)" } else { "" };
        // A String takes all that is written to it.
        let _ = match result {
            Ok(()) => writeln!(text, "[+]{name} ok{note}"),
            Err(reason) => writeln!(text, "[-]{name} failed{note}: {reason}"),
        };
    }
    let _ = writeln!(text, "{path} check {}", if failed { "failed" } else { "passed" });
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_has_a_line_for_each_check() {
        let finding = |name, informational, result: Result<(), &str>| Finding {
            name,
            informational,
            result: result.map_err(str::to_owned),
        };
        let findings = [
            finding("shutdown", false, Ok(())),
            finding("certificate", false, Err("it expired")),
            finding("watches", true, Err("not listed yet")),
        ];
        assert_eq!(
            report("readyz", &findings, true),
            "[+]shutdown ok\n[-]certificate failed: it expired\n\
             [-]watches failed (not required): not listed yet\nreadyz check failed\n"
        );
    }
}
