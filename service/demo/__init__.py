"""`sluice demo`: the whole product on embedded services, from an empty machine to joined rows."""
