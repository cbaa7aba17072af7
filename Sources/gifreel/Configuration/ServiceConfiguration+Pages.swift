internal import Fetch
internal import HTTP
internal import Web

// The pages, and what is sent by forms.
extension ServiceConfiguration {
    mutating func readPages(_ settings: SettingsReader) throws(ConfigurationError) {
        hasHomePage = try settings.flag("pages.home")
        if let text = try settings.text("server.public_url") {
            let url: SourceURL
            do throws(SourceURLError) {
                url = try SourceURL(text)
            } catch {
                throw .wrongValue("server.public_url", text, "an http or https URL")
            }
            guard url.query == nil else { throw .wrongValue("server.public_url", text, "a URL without a query") }
            publicURL = url.canonical.hasSuffix("/") ? String(url.canonical.dropLast()) : url.canonical
        }
        // The engine's own bound must not stand in the way of the largest GIF, nor of the form around it.
        http.maxBodyBytes = max(http.maxBodyBytes, fetch.maxBytes + FormSink.overhead)
    }
}
