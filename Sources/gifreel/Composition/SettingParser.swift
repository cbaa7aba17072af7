internal import Fetch
internal import Settings

/// Reads texts of the settings whose form another target defines.
enum SettingParser {
    /// Reads a URL without a query.
    ///
    /// - Parameters:
    ///   - name: The name of the setting.
    ///   - expectation: Completes the sentence “it must be …”.
    static func url(
        _ text: String, _ name: String, _ expectation: String = "an http or https URL"
    ) throws(SettingsError) -> SourceURL {
        let url: SourceURL
        do throws(SourceURLError) {
            url = try SourceURL(text)
        } catch {
            throw .wrongValue(name, text, expectation)
        }
        guard url.query == nil else { throw .wrongValue(name, text, "a URL without a query") }
        return url
    }

    /// Checks fields of requests, which are secrets: an error names a field by its number only.
    static func checkFields(_ fields: [String], _ name: String) throws(SettingsError) {
        guard let wrong = fields.firstIndex(where: { !RequestField.isValid($0) }) else { return }
        throw SettingsError(
            "\(name): number \(wrong + 1) of \(fields.count), separated by commas, is not a field “Name: value” that may be set. "
                + "A value cannot contain a comma.")
    }
}
