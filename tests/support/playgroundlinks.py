"""A link in the form of Kyverno's playground, made with LZ-string 1.5.0 itself."""

CONTENT = (
    "N4IgDg9gNglgxgTxALhAQzDAagUwE4DOMEAdsgAQDWCAbviRAHTED0NAjADomUwkAmFAMJQArgQAu+AArR4CbgFscEtPzSrk3cuR"
    "JplFVQHMC3AmBxwtJHXlFQcBazp0BaXfpwUoGxxO0uOooacAAWzoEuaCQIEZEu7niOEKJ4cI5x8ZG8Ak7kANqy/AC6AYE0aLDqUp"
    "mBAGZoMGJJAIJwEsRk5ACiJHUQaThlkcoEBGhGXh7K5GjkdISd5IAo5MOBYBpSeGRrkeaWtVlwpKp8+E67WeTuMMGTFJwgAIQAVM"
    "g+UpKP3CAANCBJAgpQYodCYXCLUgUDjcHKCchFJQqNQaNARPQGcgAdxwACMAhjHBt0hQCKEIGAzBYrAFjiRTiRzpl3ISKDj8TZIr"
    "cJlMSEY+AAPd6+L4kP4gOlSAUSUGUUS4+gqDIBBZEKHkADk7EYAGYAAwa7iSnDSiLieieCiVeBDTlGPApMB5fJSfSlTkOhzO906O"
    "BiST4ABK0AyBRoMBwWJ90yJaHSABk0AqoHlgK7FBRcWIcABfAIU/AaToUACq0gAIi0ACrdbgVPAwJNeiIOOhQCihGBGUI/f50upd"
    "0EYbDnYvzLhivtiCQEIPJVLpAhDzMgHNAA=="
)
LINK = f"https://playground.example/#/?content={CONTENT.replace('+', '%2B').replace('/', '%2F').replace('=', '%3D')}"
