//! `/healthz` and `/readyz`, as the API server has them: `?verbose` lists every
//! check, and `/readyz/NAME` asks for one.

use std::fmt::Write;
use std::net::SocketAddr;

use actix_web::dev::Server;
use actix_web::http::header::ContentType;
use actix_web::{HttpRequest, HttpResponse, web};

use super::BindAddress;
use super::health::{Finding, Health, Question};
use super::server;

const PATHS: &str = "/healthz\n/healthz/CHECK\n/readyz\n/readyz/CHECK\n";

/// Serves the probes on `address`; none if that is off.
///
/// # Errors
/// If the address cannot be had.
pub fn serve_probes(address: &BindAddress, health: Health) -> anyhow::Result<Option<(Server, SocketAddr)>> {
    server::serve("--health-probe-bind-address", address, PATHS, move |routes| {
        for (path, question) in [("healthz", Question::Live), ("readyz", Question::Ready)] {
            let (all, one) = (health.clone(), health.clone());
            let all = move |request: HttpRequest| {
                let verbose =
                    request.query_string().split('&').any(|part| part.split('=').next() == Some("verbose"));
                let answer = answer(path, &all.findings(question), verbose);
                async move { answer }
            };
            let one = move |name: web::Path<String>| {
                let findings = one
                    .findings(question)
                    .into_iter()
                    .filter(|found| found.name == *name)
                    .collect::<Vec<_>>();
                let answer =
                    if findings.is_empty() { no_such_check() } else { answer(path, &findings, false) };
                async move { answer }
            };
            // actix answers HEAD only where it is asked to.
            routes
                .service(web::resource(format!("/{path}")).get(all.clone()).route(web::head().to(all)))
                .service(
                    web::resource(format!("/{path}/{{check}}")).get(one.clone()).route(web::head().to(one)),
                );
        }
    })
}

fn answer(path: &str, findings: &[Finding], verbose: bool) -> HttpResponse {
    let failed = findings.iter().any(|finding| finding.result.is_err() && !finding.informational);
    let mut answer = if failed { HttpResponse::InternalServerError() } else { HttpResponse::Ok() };
    let text = if failed || verbose { report(path, findings, failed) } else { "ok".to_owned() };
    answer
        .content_type(ContentType::plaintext())
        .insert_header(("X-Content-Type-Options", "nosniff"))
        .body(text)
}

fn no_such_check() -> HttpResponse {
    HttpResponse::NotFound().content_type(ContentType::plaintext()).body("404 no such check\n")
}

fn report(path: &str, findings: &[Finding], failed: bool) -> String {
    let mut text = String::new();
    for Finding { name, informational, result } in findings {
        let note = if *informational { " (not required)" } else { "" };
        // Writing to a String cannot fail.
        let _ = match result {
            Ok(()) => writeln!(text, "[+]{name} ok{note}"),
            Err(reason) => writeln!(text, "[-]{name} failed{note}: {reason}"),
        };
    }
    let _ = writeln!(text, "{path} check {}", if failed { "failed" } else { "passed" });
    text
}
