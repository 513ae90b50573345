//! Which format a scraper gets, by its `Accept` header (RFC 9110, section 12.5.1).
//!
//! OpenMetrics goes to those that name it, in a version that is written here,
//! and do not like plain text better. Everybody else gets the text format, also
//! those that take neither: a scrape in the wrong format tells more than a 406.

use super::exposition::Format;

const OPEN_METRICS: &str = "application/openmetrics-text";
/// The version that is written. Version 0.0.1 names counters in another way.
const OPEN_METRICS_VERSION: &str = "1.0.0";
const TEXT: &str = "text/plain";
const TEXT_VERSION: &str = "0.0.4";

impl Format {
    /// The format for a request with this `Accept` header; an absent one is empty.
    pub fn negotiate(accept: &str) -> Self {
        let ranges: Vec<Range<'_>> = accept.split(',').filter_map(Range::parse).collect();
        let open = best(&ranges, OPEN_METRICS, OPEN_METRICS_VERSION).unwrap_or(0.0);
        // The most specific range counts.
        let text = best(&ranges, TEXT, TEXT_VERSION)
            .or_else(|| best(&ranges, "text/*", TEXT_VERSION))
            .or_else(|| best(&ranges, "*/*", TEXT_VERSION))
            .unwrap_or(0.0);
        if open > 0.0 && open >= text { Self::OpenMetrics } else { Self::Text }
    }
}

/// The greatest quality among the ranges of this name; none if there is no such range.
fn best(ranges: &[Range<'_>], name: &str, version: &str) -> Option<f32> {
    ranges
        .iter()
        .filter(|range| range.name.eq_ignore_ascii_case(name))
        .filter(|range| range.version.is_none_or(|wanted| wanted == version))
        .map(|range| range.quality)
        .reduce(f32::max)
}

/// One media range of the header.
struct Range<'a> {
    name: &'a str,
    version: Option<&'a str>,
    quality: f32,
}

impl<'a> Range<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let mut parts = text.split(';').map(str::trim);
        let name = parts.next().filter(|name| !name.is_empty())?;
        let mut range = Self { name, version: None, quality: 1.0 };
        for (key, value) in parts.filter_map(|part| part.split_once('=')) {
            let value = value.trim().trim_matches('"');
            match key.trim() {
                key if key.eq_ignore_ascii_case("version") => range.version = Some(value),
                // What is no quality is no wish to have it.
                key if key.eq_ignore_ascii_case("q") => {
                    range.quality = value.parse().ok().filter(|q| (0.0..=1.0).contains(q)).unwrap_or(0.0);
                }
                _ => {}
            }
        }
        Some(range)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_is_the_one_that_is_asked_for() {
        for (accept, format) in [
            ("", Format::Text),
            ("*/*", Format::Text),
            ("image/png", Format::Text),
            ("text/plain;version=0.0.4", Format::Text),
            ("application/openmetrics-text", Format::OpenMetrics),
            ("APPLICATION/OpenMetrics-Text ; Version=\"1.0.0\" ; Q=0.5", Format::OpenMetrics),
            // A version that is not written here.
            ("application/openmetrics-text;version=0.0.1", Format::Text),
            ("application/openmetrics-text;version=2.0.0,text/plain;q=0.1", Format::Text),
            // Qualities.
            ("application/openmetrics-text;q=0.1,text/plain;q=0.5", Format::Text),
            ("application/openmetrics-text;q=0.5,*/*;q=0.8", Format::Text),
            ("application/openmetrics-text;q=0.5,text/plain;q=0.2,*/*;q=0.8", Format::OpenMetrics),
            ("application/openmetrics-text;q=0,*/*;q=0", Format::Text),
            ("application/openmetrics-text;q=nan", Format::Text),
        ] {
            assert_eq!(Format::negotiate(accept), format, "{accept:?}");
        }
    }

    #[test]
    fn prometheus_gets_open_metrics_and_a_browser_gets_text() {
        let prometheus_2 = "application/openmetrics-text;version=1.0.0;q=0.5,\
             application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
        let prometheus_3 = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.7,\
             application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,\
             application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,\
             text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
        let browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
        assert_eq!(Format::negotiate(prometheus_2), Format::OpenMetrics);
        assert_eq!(Format::negotiate(prometheus_3), Format::OpenMetrics);
        assert_eq!(Format::negotiate(browser), Format::Text);
    }
}
