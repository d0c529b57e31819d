// Starts tilus-lsp, which answers for programs. Without the client library (npm install) or the server, highlighting
// and brackets work all the same.
const vscode = require("vscode");

let client;

async function activate(context) {
  const settings = vscode.workspace.getConfiguration("tilus");
  let library;
  try {
    library = require("vscode-languageclient/node");
  } catch {
    vscode.window.showWarningMessage("Tilus: run `npm install` in the extension's folder to use tilus-lsp.");
    return;
  }
  const options = { target: settings.target, defines: settings.defines, importPaths: settings.importPaths,
                    milliseconds: settings.milliseconds };
  client = new library.LanguageClient("tilus", "Tilus", { command: settings.server }, {
    documentSelector: [{ language: "tilus" }],
    initializationOptions: options,
    synchronize: { configurationSection: "tilus" },
  });
  context.subscriptions.push(client);
  await client.start();
}

function deactivate() {
  return client && client.stop();
}

module.exports = { activate, deactivate };
