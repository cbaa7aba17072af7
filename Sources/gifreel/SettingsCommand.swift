internal import ArgumentParser
internal import Settings

extension SettingsDocument: ExpressibleByArgument {}

struct SettingsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "settings",
        abstract: "Prints every setting with its default and meaning.",
        discussion: "To start with a configuration file of your own: gifreel settings >gifreel.yaml")

    @Option(help: "yaml: a configuration file; markdown: a table; man: the manual page gifreel.yaml(5).")
    var format = SettingsDocument.yaml

    func run() {
        print(format.text, terminator: "")
    }
}
