"""What a person trains: how labels become targets."""
