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

    /// Reads a list of texts, all of one form.
    ///
    /// - Parameters:
    ///   - name: The name of the setting.
    ///   - expectation: Completes the sentence “it must be …”.
    ///   - read: Returns nil for a text of another form.
    static func list<Item>(
        _ texts: [String], _ name: String, _ expectation: String, _ read: (String) -> Item?
    ) throws(SettingsError) -> [Item] {
        var items: [Item] = []
        for text in texts {
            guard let item = read(text) else { throw .wrongValue(name, text, expectation) }
            items.append(item)
        }
        return items
    }
}
