"""Charts in the sandbox, with the controllers as processes under the accounts that the charts make."""
